"""Drives a headless Chromium by the DevTools protocol, for tests of pages: requests, console messages, input, screenshots."""
import base64
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request


def find():
    """Returns the path of Chromium or Chrome, or None."""
    return next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class WebSocket:
    """A client of RFC 6455, for texts."""

    def __init__(self, url, timeout):
        host, _, path = url.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self.socket = socket.create_connection((name, int(port)), timeout=timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode(errors="replace"))

    def take(self, count):
        while len(self.buffer) < count:
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("the browser closed the connection")
            self.buffer += more
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send(self, text):
        data = text.encode()
        size = bytes([0x80 | len(data)]) if len(data) < 126 else (
            b"\xfe" + len(data).to_bytes(2, "big") if len(data) < 1 << 16 else b"\xff" + len(data).to_bytes(8, "big"))
        mask = os.urandom(4)
        self.socket.sendall(b"\x81" + size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        message = b""
        while True:
            first, second = self.take(2)
            size = second & 0x7F
            if size >= 126:
                size = int.from_bytes(self.take(2 if size == 126 else 8), "big")
            data = self.take(size)
            if first & 0x0F in (0, 1):
                message += data
                if first & 0x80:
                    return message.decode()


class Browser:
    """One page at a time. `messages` are console messages and exceptions, `requests` the addresses that were asked for."""

    def __init__(self, width=1280, height=900, timeout=60):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", f"--window-size={width},{height}",
             "--remote-debugging-port=0", f"--user-data-dir={self.folder.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.connect(width, height, timeout)
        except BaseException:
            self.__exit__()
            raise

    def connect(self, width, height, timeout):
        port = pathlib.Path(self.folder.name, "DevToolsActivePort")
        end = time.monotonic() + timeout
        while not port.exists() or "\n" not in port.read_text():
            if time.monotonic() > end or self.process.poll() is not None:
                raise TimeoutError("Chromium did not start")
            time.sleep(0.05)
        address = f"http://127.0.0.1:{port.read_text().split()[0]}/json/version"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=timeout) as answer:
            url = json.load(answer)["webSocketDebuggerUrl"]
        self.socket = WebSocket(url, timeout)
        self.count, self.session, self.events = 0, None, []
        self.messages, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.folder.cleanup()

    def read(self):
        """Reads one message and records what it tells; returns it."""
        message = json.loads(self.socket.receive())
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.messages.append(f"{values['type']}: {[a.get('value', a.get('description')) for a in values['args']]}")
        elif method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            self.messages.append(f"{values['entry']['level']}: {values['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        if method:
            self.events.append(method)
        return message

    def call(self, method, **values):
        self.count += 1
        number = self.count
        request = {"id": number, "method": method, "params": values}
        if self.session:
            request["sessionId"] = self.session
        self.socket.send(json.dumps(request))
        while True:
            message = self.read()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def open(self, path, dark=False, wait=True):
        """Opens a file, in one of the themes, and waits until it is loaded and, if it may run scripts, drawn."""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.messages, self.requests, self.events = [], [], []
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while "Page.loadEventFired" not in self.events:
            self.read()
        if wait:
            self.frame()

    def frame(self):
        """Waits until what was changed is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression, or of its promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description"))
        return answer["result"].get("value")

    def click(self, x, y, count=1):
        for n in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=n)
        self.frame()

    def drag(self, begin, end):
        for kind, (x, y) in (("mousePressed", begin), ("mouseMoved", end), ("mouseReleased", end)):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        self.frame()

    def wheel(self, x, y, dy, control=False):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=dy, modifiers=2 if control else 0)
        self.frame()

    def key(self, key, text=""):
        code = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "Tab": 9}.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = text or (key if len(key) == 1 else "\r" if key == "Enter" else "")
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.frame()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.frame()

    def text(self):
        """Returns the texts of the document, also where scripts are disabled."""
        root = self.call("DOM.getDocument", depth=-1)["root"]
        texts = []

        def visit(node):
            if node["nodeType"] == 3:
                texts.append(node["nodeValue"])
            for child in node.get("children", []):
                visit(child)

        visit(root)
        return " ".join(texts)

    def screenshot(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
