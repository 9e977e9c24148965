"""A registry of images on this machine."""

import re
import subprocess
import tempfile
import time
from pathlib import Path


class Registry:
    """A docker-registry process. It chooses a free port itself and writes to its log which one it has."""

    def __init__(self, place: Path, storage: Path, htpasswd: Path | None = None):
        own = Path(tempfile.mkdtemp(prefix="registry-", dir=place))
        auth = f"auth:\n  htpasswd:\n    realm: trial\n    path: {htpasswd}\n" if htpasswd else ""
        config, log = own / "config.yml", own / "log"
        config.write_text(
            f"version: 0.1\nlog:\n  level: info\n  accesslog:\n    disabled: true\n"
            f"storage:\n  filesystem:\n    rootdirectory: {storage}\nhttp:\n  addr: 127.0.0.1:0\n{auth}"
        )
        with open(log, "w") as output:
            self.process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=subprocess.DEVNULL, stderr=output)
        deadline = time.monotonic() + 30
        while not (told := re.search(r"listening on 127\.0\.0\.1:(\d+)", log.read_text())):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"the registry did not come up:\n{log.read_text()}")
            time.sleep(0.05)
        self.port = int(told[1])

    def close(self):
        self.process.kill()
        self.process.wait()
