"""An HTTP server that stores what is PUT to it, as a cache of builds, and that can be told to misbehave."""
import http.server
import threading

from action_results import Refused, judge

# What a server may do instead of answering.
FAULTS = ("truncate", "stall", "500", "wrong", "other", "garbage", "refuse")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet

    def log_message(self, *arguments):
        pass

    def reply(self, status, body=b"", length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def note(self):
        server = self.server
        with server.lock:
            server.requests.append((self.command, self.path, dict(self.headers)))
        return server

    def accepts(self, body):
        """As bazel-remote, if the server is told to."""
        server = self.server
        if server.validate and "/ac/" in self.path:
            try:
                judge(self.path.split("/")[-1], body, {p.split("/")[-1]: blob for p, blob in list(server.stored.items()) if "/cas/" in p})
            except Refused as why:
                with server.lock:
                    server.refused.append((self.command, self.path, str(why)))
                return False
        return True

    def do_GET(self):
        server = self.note()
        body = server.stored.get(self.path)
        fault = server.fault if server.applies_to in self.path else None
        if server.credentials and self.headers.get("Authorization") != server.credentials:
            return self.reply(401)
        if fault == "500":
            return self.reply(500, b"an error page")
        if body is None or not self.accepts(body):
            return self.reply(404, b"nothing here")
        if fault == "stall":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:1])
            self.wfile.flush()
            server.stopped.wait(60)
            self.close_connection = True
        elif fault == "truncate":
            self.reply(200, body[:len(body) // 2], len(body))
            self.close_connection = True
        elif fault == "wrong":
            self.reply(200, bytes(b ^ 1 for b in body))
        elif fault == "other":
            others = [v for k, v in server.stored.items() if server.applies_to in k and k != self.path]
            self.reply(200, others[0] if others else b"")
        elif fault == "garbage":
            self.reply(200, b"<html>Welcome</html>")
        else:
            self.reply(200, body)

    do_HEAD = do_GET

    def do_PUT(self):
        server = self.note()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if server.credentials and self.headers.get("Authorization") != server.credentials:
            return self.reply(401)
        if server.fault == "refuse":
            return self.reply(403)
        if server.fault == "500":
            return self.reply(500)
        if not self.accepts(body):
            return self.reply(400)
        server.stored[self.path] = body
        self.reply(201)


class CacheServer(http.server.ThreadingHTTPServer):
    """with CacheServer() as server: ... server.url ..."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.stored, self.requests, self.lock = {}, [], threading.Lock()
        self.fault, self.applies_to, self.credentials = None, "/", None
        self.validate, self.refused = False, []
        self.stopped = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/pre/fix"

    def handle_error(self, *arguments):  # clients may hang up
        pass

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *arguments):
        self.stopped.set()
        self.shutdown()
        self.server_close()

    def count(self, method, part):
        return sum(1 for m, p, _ in self.requests if m == method and part in p)
