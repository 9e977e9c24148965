"""A web server that gives files only to clients that know its secrets, with every form of authentication that servers use."""

import base64
import urllib.parse
from pathlib import Path

from local_server import LocalServer


class Guarded(LocalServer):
    """Serves `root` on 127.0.0.1. The first part of the path selects what is required:

    /login/NAME/PATH     basic authentication with logins[NAME], a user and a password
    /bearer/PATH         the bearer token `bearer`
    /t/TOKEN/PATH        the token `token` in the path, as for conda servers
    /feed/TOKEN/PATH     the same token, where only the server knows that it is one
    /signed/PATH?sig=S   the signature `signature` in the query
    """

    def __init__(self, root: Path, logins: dict, bearer="", token="", signature=""):
        self.root, self.logins, self.bearer, self.token, self.signature = root, logins, bearer, token, signature
        self.given = set()  # which secrets were given correctly: "login/NAME", "bearer", ...
        super().__init__()

    def url(self, path, login="", host="127.0.0.1"):
        return f"http://{login}{host}:{self.port}/{path}"

    def path_for(self, request):
        """The requested file; None if the request lacks the secret."""
        address = urllib.parse.urlsplit(request.path)
        kind, _, rest = urllib.parse.unquote(address.path).lstrip("/").partition("/")
        sent = request.headers.get("Authorization", "")
        if kind == "login":
            name, _, rest = rest.partition("/")
            knows = sent == "Basic " + base64.b64encode(":".join(self.logins[name]).encode()).decode()
            kind += "/" + name
        elif kind == "bearer":
            knows = sent == "Bearer " + self.bearer
        elif kind in ("t", "feed"):
            token, _, rest = rest.partition("/")
            knows = token == self.token
        else:
            knows = urllib.parse.parse_qs(address.query).get("sig") == [self.signature]
        if not knows:
            return None
        self.given.add(kind)
        return self.root / rest

    def answer(self, request):
        path = self.path_for(request)
        if path is None:
            return self.send(request, 401, {"WWW-Authenticate": "Basic realm=guarded"})
        if path.is_dir():
            path = path / "index.html"
        if not path.is_file():
            return self.send(request, 404, {})
        kind = {"Content-Type": "text/html"} if path.name == "index.html" else {}
        return self.send(request, 200, kind, path.read_bytes())
