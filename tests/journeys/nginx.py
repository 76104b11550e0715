"""A real nginx before the console, with TLS, configured as docs/how-to/run-behind-a-proxy.md shows it."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgqueue_admin.embedded import ports
from tests.waiting import until

PROGRAM = os.environ.get("NGINX") or shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or "/usr/sbin/nginx"
TLS = Path(__file__).resolve().parent.parent / "fixtures/tls"
WHOLE = """
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  types {{ text/html html; }}
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {tls}/certificate.pem; ssl_certificate_key {tls}/key.pem;
    {locations}
    location / {{ return 418 "another application\\n"; }}
  }}
}}
"""


@contextmanager
def before(folder: Path, port: int, locations: str) -> Iterator[Path]:
    """nginx on ``port``, with these locations; gives the file of its errors."""
    folder.mkdir()
    file = folder / "nginx.conf"
    file.write_text(WHOLE.format(folder=folder, port=port, tls=TLS, locations=locations))
    process = subprocess.Popen([PROGRAM, "-e", str(folder / "error.log"), "-p", str(folder), "-c", str(file)])
    try:
        until(lambda: ports.answers(port, "127.0.0.1"), what="nginx answers")
        yield folder / "error.log"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
