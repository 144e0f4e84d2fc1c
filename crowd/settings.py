"""All settings, from the environment only; a wrong value refuses to start.

With an empty environment: SQLite, files under var/, the local platform, tasks run by the commands themselves.
A secret may also come from a file: NAME_FILE names it.
"""

import contextlib
import hashlib
import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import ParseResult, unquote, urlparse

from django.core.exceptions import ImproperlyConfigured

from crowd.platforms import settings_of_all

BASE_DIR = Path(__file__).resolve().parent.parent

# Read when numpy is first imported. Its matrices are small here: more threads would wait for each other and
# for torch's, and the last bits of sums would depend on how many cores a machine has.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Read at the first matrix product of torch. Without STRICT, MKL rounds a row differently at another place of
# its batch on some processors, so a map would depend on its neighbours (stimuli/planner/arithmetic.py).
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


def env_text(name: str, default: str = "") -> str:
    """The value of NAME, or the content of the file that NAME_FILE names."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE: cannot read {path!r}: {error.strerror}.") from error
    return os.environ.get(name, default)


def env_flag(name: str, default: bool) -> bool:
    value = env_text(name, str(default)).lower()
    if value not in {"true", "false", "1", "0"}:
        raise ImproperlyConfigured(f"{name}={value!r}: give true or false.")
    return value in {"true", "1"}


def env_number(name: str, default: int) -> int:
    value = env_text(name, str(default))
    if not value.isdigit():
        raise ImproperlyConfigured(f"{name}={value!r}: give a whole number.")
    return int(value)


def env_amounts(name: str, default: str) -> dict[str, int]:
    """Amounts per currency, as GBP=900,USD=1200."""
    value = env_text(name, default)
    amounts = {}
    for part in value.split(","):
        currency, _, cents = part.strip().partition("=")
        if len(currency) != 3 or not currency.isupper() or not cents.isdigit():
            raise ImproperlyConfigured(f"{name}={value!r}: give amounts in cents, as GBP=900,USD=1200.")
        amounts[currency] = int(cents)
    return amounts


def _port(parts: ParseResult) -> str:
    """The port as text; a password with / or # in it spoils the address, and is never printed."""
    try:
        return str(parts.port or "")
    except ValueError:
        raise ImproperlyConfigured(
            "DATABASE_URL has no readable port: percent-encode the special characters of its password."
        ) from None


def database_from(url: str) -> dict[str, Any]:
    """Django's setting for sqlite:///path or postgresql://user:password@host:port/name."""
    parts = urlparse(url)
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": unquote(parts.path[1:] if parts.path.startswith("//") else parts.path.lstrip("/")),
            # IMMEDIATE: a writer queues for the lock instead of failing when it upgrades from reading.
            "OPTIONS": {
                "timeout": 30,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
            "CONN_MAX_AGE": 60,
        }
    if parts.scheme in {"postgres", "postgresql"}:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or ""),
            "PORT": _port(parts),
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": False,
        }
    raise ImproperlyConfigured(
        f"DATABASE_URL begins with {parts.scheme!r}: give sqlite:///path or "
        "postgresql://user:password@host:port/name."
    )


def caches_from(url: str) -> dict[str, Any]:
    """Django's setting: a memory of each process, and what all processes share, if there is an address."""
    caches: dict[str, Any] = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    if not url:
        return caches
    if urlparse(url).scheme not in {"redis", "rediss"}:
        raise ImproperlyConfigured(
            f"CACHE_URL begins with {urlparse(url).scheme!r}: give redis://host:port/number."
        )
    # A store that does not answer must not hold up people who join: the database counts them then.
    options = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5}
    shared = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": url, "OPTIONS": options}
    return {**caches, "shared": shared}


def local_secret(folder: Path) -> str:
    """A key of this checkout, made once; a server that is reached from outside sets SECRET_KEY instead."""
    path = folder / "secret-key"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"secret-key.{secrets.token_hex(4)}")
        part.write_text(secrets.token_urlsafe(48))
        part.chmod(0o600)
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
        part.unlink()
    return path.read_text().strip()


VAR_DIR = Path(env_text("LEGIBLE_VAR", str(BASE_DIR / "var"))).resolve()
DEBUG = env_flag("DEBUG", False)
# Signs logins and forms. It can be replaced: those that were signed before are read with the fallbacks.
SECRET_KEY = env_text("SECRET_KEY") or local_secret(VAR_DIR)
SECRET_KEY_FALLBACKS = [key for key in env_text("SECRET_KEY_FALLBACKS").split(",") if key]
# Under it outside identities, addresses of pictures and names of exports are hashed, so it stays for ever.
IDENTITY_KEY = env_text("IDENTITY_KEY") or SECRET_KEY
# A demo writes down where it serves its folder: commands beside it print addresses that answer.
SERVED_AT = VAR_DIR / "served-at.txt"
BASE_URL = env_text("BASE_URL") or (SERVED_AT.read_text() if SERVED_AT.exists() else "http://127.0.0.1:8000")
BASE_URL = BASE_URL.strip().rstrip("/")
SECURE = BASE_URL.startswith("https://")
ALLOWED_HOSTS = [host for host in env_text("ALLOWED_HOSTS").split(",") if host] or sorted(
    {"127.0.0.1", "localhost", "[::1]", urlparse(BASE_URL).hostname or "localhost"}
)
CSRF_TRUSTED_ORIGINS = [BASE_URL]

DATABASE_URL = env_text("DATABASE_URL", f"sqlite:///{VAR_DIR / 'legible.sqlite3'}")
if f"sqlite:///{VAR_DIR / 'legible.sqlite3'}" == DATABASE_URL:
    VAR_DIR.mkdir(parents=True, exist_ok=True)
DATABASES = {"default": database_from(DATABASE_URL)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STORAGE_URL = env_text("STORAGE_URL", str(VAR_DIR / "store"))
STUDY_DIRS = [Path(p) for p in env_text("STUDY_DIRS").split(os.pathsep) if p]
STIMULUS_LEASE_S = env_number("STIMULUS_LEASE_S", 900)
# The device of this process (auto, cpu, cuda, cuda:1 …), and the queue for render messages.
STIMULUS_DEVICE = env_text("STIMULUS_DEVICE", "auto")
STIMULUS_QUEUE = env_text("STIMULUS_QUEUE", "stimuli.cpu")

# What the adapters of the platforms ask for: accounts, switches, secrets of notifications. Amazon's own
# variables (AWS_ACCESS_KEY_ID …) are read by its library.
for _name, _type in settings_of_all().items():
    globals()[_name] = env_flag(_name, False) if _type is bool else env_text(_name)
# Sent to the address of a model that ask_model asks, in one header, and stored nowhere.
MODEL_KEY = env_text("MODEL_KEY")
HOURLY_FLOOR_CENTS = env_amounts("HOURLY_FLOOR_CENTS", "GBP=900,USD=1200")
SETTLE_CONFIRM_CENTS = env_number("SETTLE_CONFIRM_CENTS", 20_000)
# Above this sum a payment that a page asks for is confirmed by a second login; 0 is off.
SECOND_PERSON_CENTS = env_number("SECOND_PERSON_CENTS", 0)
PAYOUT_GRACE_S = env_number("PAYOUT_GRACE_S", 900)
# Only rehearsals and tests: a file with the seconds by which the clock of payments is ahead.
CLOCK_FILE = env_text("CLOCK_FILE")

# Whom `watch` tells of trouble, and by which mail server.
ALERT_EMAIL = env_text("ALERT_EMAIL")
ALERT_WEBHOOK = env_text("ALERT_WEBHOOK")
ALERT_WEBHOOK_SECRET = env_text("ALERT_WEBHOOK_SECRET")
ALERT_STALLED_H = env_number("ALERT_STALLED_H", 6)
DISK_FREE_MIN_MB = env_number("DISK_FREE_MIN_MB", 500)
EMAIL_HOST = env_text("EMAIL_HOST", "localhost")
EMAIL_PORT = env_number("EMAIL_PORT", 25)
EMAIL_HOST_USER = env_text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env_text("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env_flag("EMAIL_USE_TLS", False)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env_text("EMAIL_FROM", "legible@localhost")

UNVERIFIED_LEASE_S = env_number("UNVERIFIED_LEASE_S", 600)
UNVERIFIED_PERCENT = env_number("UNVERIFIED_PERCENT", 25)
ADDRESS_PLACES_MAX = env_number("ADDRESS_PLACES_MAX", 8)
JOINS_PER_MINUTE = env_number("JOINS_PER_MINUTE", 120)
CACHE_URL = env_text("CACHE_URL")
CACHES = caches_from(CACHE_URL)

CELERY_BROKER_URL = env_text("CELERY_BROKER_URL")
CELERY_TASK_ALWAYS_EAGER = not CELERY_BROKER_URL
CELERY_TASK_EAGER_PROPAGATES = True
# A page that asks a worker waits for this; a broker that is away is told at once.
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0.2, "interval_max": 0.2}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Longer than any batch takes: a message that is delivered twice is rendered twice.
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 12 * 3600}
CELERY_TASK_DEFAULT_QUEUE = "celery"
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BEAT_SCHEDULE = {
    "send missing stimuli again": {"task": "stimuli.tasks.sweep_stimuli", "schedule": 60.0},
    "refresh reports": {"task": "analysis.tasks.refresh_reports", "schedule": 60.0},
    "ask the platforms": {"task": "crowd.tasks.sync_postings", "schedule": 120.0},
    "fetch notifications": {"task": "crowd.tasks.pull_notices", "schedule": 60.0},
    "forget whose time has come": {"task": "crowd.tasks.forget_due", "schedule": 3600.0},
}

INSTALLED_APPS = [
    "crowd.apps.AdministratorsConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "stimuli",
    "experiments",
    "analysis",
    "crowd",
    "crowd.dashboard",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "crowd.ground.nul_query_guard.refuse_nul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "crowd.urls"
WSGI_APPLICATION = "crowd.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
# Files are found in the apps and in frontend/dist; nothing has to be collected.
STATIC_ROOT = None
PARTICIPANT_PAGE_DIR = BASE_DIR / "frontend" / "dist"
STATICFILES_DIRS = [("participant", PARTICIPANT_PAGE_DIR)] if PARTICIPANT_PAGE_DIR.is_dir() else []
WHITENOISE_USE_FINDERS = True
# The build puts a hash of each file's content into its name, so that a browser never needs to ask again.
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/participant/assets/[^/]+-[\w-]{8}\.(js|css)$"

# The browser of `screenshots`, and a further folder of Playwright's browsers.
CHROMIUM = env_text("CHROMIUM")
PLAYWRIGHT_BROWSERS_PATH = env_text("PLAYWRIGHT_BROWSERS_PATH")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_PARSER_CLASSES": ["experiments.api.parsers.GuardedJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "experiments.api.error_responses.exception_response",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Legible: the participant's API",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/",
}

LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
# For how long a link of login_link may be used; no page resets a password.
PASSWORD_RESET_TIMEOUT = 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
# A browser sends its cookies to every port of a host: two installations there would log each other out.
INSTALLATION = hashlib.sha256(f"{BASE_URL} {VAR_DIR}".encode()).hexdigest()[:8]
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"session_{INSTALLATION}", f"csrf_{INSTALLATION}"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SECURE else None
# The proxy that ends TLS tells by the header above what people came by. Health checks come from inside.
SECURE_SSL_REDIRECT = SECURE
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE
# Not SECURE_HSTS_PRELOAD: browsers take only whole domains into their lists, and hardly let them out again.
# That is for the owner of the domain to decide, not for a study on one of its hosts.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
SECURE_CONTENT_TYPE_NOSNIFF = True
SESSION_COOKIE_SAMESITE = "Lax"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": env_text("LOG_LEVEL", "WARNING")},
}
