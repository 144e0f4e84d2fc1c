#!/usr/bin/env bash
# pillow-heif 1.8.1 with Pillow 12.0.0: a picture that says by EXIF how it is to be turned is upright as JPEG and
# as PNG, and lies on its side once it is saved as HEIC and read again. The plug-in writes the EXIF mark, but no
# rotation of the container; when it reads, it takes the mark for done, and sets it to 1. Photographs of phones have
# the rotation in the container and are read upright. Seen, of 12 x 8 pixels to be turned by a quarter:
#   JPEG upright 8 x 12; PNG upright 8 x 12; HEIF upright 12 x 8
# What to do: turn the pixels (ImageOps.exif_transpose) before a picture is saved as HEIC.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q Pillow==12.0.0 pillow-heif==1.8.1
"$folder/venv/bin/python" - <<'PYTHON'
import io

import pillow_heif
from PIL import Image, ImageOps

pillow_heif.register_heif_opener()
picture, mark = Image.new("RGB", (12, 8), "red"), Image.Exif()
mark[274] = 6  # to be turned clockwise by a quarter
sizes = {}
for form in ("JPEG", "PNG", "HEIF"):
    file = io.BytesIO()
    picture.save(file, form, exif=mark)
    sizes[form] = ImageOps.exif_transpose(Image.open(file)).size
print("; ".join(f"{form} upright {size[0]} x {size[1]}" for form, size in sizes.items()))
assert sizes == {"JPEG": (8, 12), "PNG": (8, 12), "HEIF": (12, 8)}
PYTHON
