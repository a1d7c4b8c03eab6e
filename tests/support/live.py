"""Traffic that lasts: keep-alive HTTP, upgraded and TCP connections that talk all the time, and the
endpoints behind them, all in one event loop on a thread of its own.

Every answer names the request that it is for. A connection that ends, or an answer that is late,
another's or no success, goes to `lost` with the number of the change that was made last.
"""

import asyncio
import random
import re
import threading

from support.wait import SLOW

_V2_BEGIN = b"\r\n\r\n\x00"


async def _skip_proxy_header(reader):
    """The bytes after a PROXY header of either version, as far as they had to be read."""
    first = await reader.readexactly(5)
    if first == b"PROXY":
        await reader.readline()
        return b""
    if first == _V2_BEGIN:
        fixed = await reader.readexactly(11)
        await reader.readexactly(int.from_bytes(fixed[9:11], "big"))
        return b""
    return first


class Endpoint:
    """Answers HTTP by what the query asks for, echoes what is upgraded, and echoes raw bytes."""

    def __init__(self, name, raw=False):
        self.name = name
        self.raw = raw
        self.requests = 0
        self.address = None
        self._server = None

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.address = "127.0.0.1:%d" % self._server.sockets[0].getsockname()[1]

    def close(self):
        self._server.close()

    async def _serve(self, reader, writer):
        try:
            ahead = await _skip_proxy_header(reader)
            if self.raw:
                await self._echo(reader, writer, ahead)
            else:
                while await self._answer(reader, writer, ahead):
                    ahead = b""
        except (OSError, EOFError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    @staticmethod
    async def _echo(reader, writer, ahead):
        data = ahead
        while True:
            writer.write(data)
            await writer.drain()
            data = await reader.read(65536)
            if not data:
                return

    async def _answer(self, reader, writer, ahead):
        head = ahead + await reader.readuntil(b"\r\n\r\n")
        target = head.split(b" ", 2)[1].decode()
        if re.search(rb"(?mi)^upgrade: echo\r$", head):
            self.requests += 1
            writer.write(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
            await self._echo(reader, writer, b"")
            return False
        body = await _body(reader, head)
        self.requests += 1
        asked = dict(re.findall(r"[?&](\w+)=([^&]*)", target))
        if "delay" in asked:
            await asyncio.sleep(int(asked["delay"]) / 1000)
        text = f"{asked.get('id', '-')} {len(body)} {self.name}\n".encode()
        lines = b"HTTP/1.1 200 OK\r\nX-Origin: %s\r\n" % self.name.encode()
        if "chunks" not in asked:
            writer.write(lines + b"Content-Length: %d\r\n\r\n" % len(text) + text)
            await writer.drain()
            return True
        writer.write(lines + b"Transfer-Encoding: chunked\r\n\r\n")
        for part in [text] + [b"."] * int(asked["chunks"]):
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
            await asyncio.sleep(0.005)
        writer.write(b"0\r\n\r\n")
        return True


def _field(head, name):
    found = re.search(rb"(?mi)^" + name + rb":[ \t]*([^\r]*)\r$", head)
    return found and found.group(1)


async def _body(reader, head):
    if (_field(head, b"transfer-encoding") or b"").lower() == b"chunked":
        body = b""
        while True:
            size = int(await reader.readuntil(b"\r\n"), 16)
            data = await reader.readexactly(size + 2)
            if size == 0:
                return body
            body += data[:-2]
    return await reader.readexactly(int(_field(head, b"content-length") or 0))


class Traffic:
    """start(), then add_*(), then stop(); `lost` says what went wrong meanwhile."""

    def __init__(self, seed, pause=(0.05, 0.3)):
        self.rng = random.Random(seed)
        self.pause = pause
        self.lost = []
        self.exchanges = 0  # answers of all kinds
        self.change = 0  # set by the test
        self.alive = 0
        self._tasks = []
        self._endpoints = []
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _do(self, coroutine, timeout=30.0):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout * SLOW)

    def endpoint(self, name, raw=False):
        made = Endpoint(name, raw)
        self._do(made.start())
        self._endpoints.append(made)
        return made

    def add(self, kind, count, *args):
        """kind: "http" (port, host, path), "upgrade" (port, host, path), "tcp" (address, port)."""
        talk = {"http": self._http, "upgrade": self._upgrade, "tcp": self._tcp}[kind]

        async def begin():
            for _ in range(count):
                name = f"{kind}{len(self._tasks)}"
                rng = random.Random(self.rng.random())
                self._tasks.append(asyncio.create_task(self._guard(name, talk(name, rng, *args))))

        self._do(begin())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, timeout=30.0):
        """Every connection has one more exchange; then all ends. Again: nothing."""

        async def end():
            self._stopping.set()
            late = ()
            if self._tasks:
                _, late = await asyncio.wait(self._tasks, timeout=timeout * SLOW)
            self.lost += ["a connection hangs"] * len(late)
            for made in self._endpoints:
                made.close()
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        if self._thread.is_alive():
            self._do(end(), timeout + 10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    async def _guard(self, name, talk):
        self.alive += 1
        try:
            await talk
        except asyncio.CancelledError:
            raise
        except Exception as fault:  # whatever it is, it was not to happen
            self.lost.append(f"change {self.change}: {name}: {type(fault).__name__}: {fault}")
            self.alive -= 1

    async def _pause(self, rng):
        """False when it is time for the last exchange."""
        if self._stopping.is_set():
            return False
        try:
            await asyncio.wait_for(self._stopping.wait(), rng.uniform(*self.pause))
        except asyncio.TimeoutError:
            pass
        return True

    async def _in_time(self, waited):
        return await asyncio.wait_for(waited, 15 * SLOW)

    async def _http(self, name, rng, port, host, path):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count, goes_on = 0, True
        while goes_on:
            goes_on = await self._pause(rng)
            count += 1
            token = f"{name}.{count}"
            roll, size = rng.random(), 0
            more = "" if roll < 0.6 else f"&delay={rng.randint(1, 300)}" if roll < 0.8 else "&chunks=8"
            head = f"{path}?id={token}{more} HTTP/1.1\r\nHost: {host}\r\n"
            if roll < 0.7:
                writer.write(f"GET {head}\r\n".encode())
            elif roll < 0.9:
                size = rng.randint(1, 20000)
                writer.write(f"POST {head}Content-Length: {size}\r\n\r\n".encode() + b"b" * size)
            else:
                size = 8
                writer.write(f"POST {head}Transfer-Encoding: chunked\r\n\r\n".encode())
                for part in (b"4\r\nabcd\r\n", b"4\r\nefgh\r\n", b"0\r\n\r\n"):
                    writer.write(part)
                    await asyncio.sleep(0)
            answer = await self._in_time(reader.readuntil(b"\r\n\r\n"))
            body = await self._in_time(_body(reader, answer))
            if not answer.startswith(b"HTTP/1.1 200 ") or (_field(answer, b"connection") or b"") == b"close":
                raise AssertionError(f"{token}: {answer + body!r}")
            if not body.startswith(f"{token} {size} ".encode()):
                raise AssertionError(f"{token} {size} was answered {body!r}")
            self.exchanges += 1
        writer.close()

    async def _upgrade(self, name, rng, port, host, path):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n".encode()
        )
        answer = await self._in_time(reader.readuntil(b"\r\n\r\n"))
        if not answer.startswith(b"HTTP/1.1 101 "):
            raise AssertionError(f"no upgrade: {answer!r}")
        await self._talk(name, rng, reader, writer)

    async def _tcp(self, name, rng, host, port):
        reader, writer = await asyncio.open_connection(host, port)
        await self._talk(name, rng, reader, writer)

    async def _talk(self, name, rng, reader, writer):
        count, goes_on = 0, True
        while goes_on:
            goes_on = await self._pause(rng)
            count += 1
            token = f"{name}.{count};".encode() * rng.choice((1, 1, 1, 50, 2000))
            writer.write(token)
            if await self._in_time(reader.readexactly(len(token))) != token:
                raise AssertionError(f"{name}.{count} came back otherwise")
            self.exchanges += 1
        writer.close()
