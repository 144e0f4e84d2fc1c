# Legible: web, worker and beat are one image with three commands (docker-compose.yml).
FROM node:22-slim AS page
WORKDIR /page/frontend
COPY frontend/package.json frontend/package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY frontend ./
COPY experiments/wording/words /page/experiments/wording/words
RUN npm run build

FROM python:3.12-slim AS packages
ARG TORCH=cpu
WORKDIR /app
RUN python -m venv /venv
ENV PATH=/venv/bin:$PATH UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1 VIRTUAL_ENV=/venv
COPY requirements/constraints.txt ./constraints.txt
RUN pip install --no-cache-dir -c constraints.txt uv \
 && uv pip install --torch-backend $TORCH -c constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
# The requirements alone, so that a change of the code does not install them again.
RUN python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; o = p['optional-dependencies']; print(*p['dependencies'], *o['server'], *o['transformers'], *o['units'], *o['heic'], sep='\n')" > wanted.txt \
 && uv pip install -c constraints.txt -r wanted.txt

FROM python:3.12-slim
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 LEGIBLE_VAR=/data OMP_NUM_THREADS=2
# Pillow looks for FriBiDi when it draws text from right to left.
RUN apt-get update && apt-get install -y --no-install-recommends libfribidi0 && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /data --create-home legible
WORKDIR /app
COPY --from=packages /venv /venv
COPY manage.py pyproject.toml README.md LICENSE ./
COPY stimuli ./stimuli
COPY experiments ./experiments
COPY analysis ./analysis
COPY crowd ./crowd
COPY --from=page /page/frontend/dist ./frontend/dist
USER legible
VOLUME /data
EXPOSE 8000
CMD ["gunicorn", "crowd.wsgi", "--config", "crowd/gunicorn.py", "--bind", "0.0.0.0:8000"]
