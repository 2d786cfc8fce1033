"""`midstream demo`: every fault shown on loopback, directly and through the proxy."""

import asyncio
import sys

from aiohttp import web

from midstream import wiring
from midstream.config import load
from midstream.demo import agent, chat, history
from midstream.demo.fault import Fault, Outcome, Scene
from midstream.hosts import gateway

FAULT_SECONDS = 30
FAULTS = (*chat.FAULTS, *agent.FAULTS, *history.FAULTS)


def main() -> int:
    """Show every fault; return 1 if any is not mended."""
    return asyncio.run(_show_all())


async def _show_all() -> int:
    print("Each fault is played twice against a small faulty server: directly, then proxied.")
    mended = [await _show(fault) for fault in FAULTS]
    return 0 if all(mended) else 1


async def _show(fault: Fault) -> bool:
    print(f"\n{fault.title}")
    direct = await _play(fault, is_proxied=False)
    print(f"  direct:   {direct.seen}")
    proxied = await _play(fault, is_proxied=True)
    print(f"  proxied:  {proxied.seen}")
    if direct.is_right:
        print("  (the fault did not show without the proxy)", file=sys.stderr)
    print(f"{fault.addon}: {'mended' if proxied.is_right else 'not mended'}")
    return proxied.is_right and not direct.is_right


async def _play(fault: Fault, *, is_proxied: bool) -> Outcome:
    """Play a fault against a server of its own, within a time limit."""
    scene = fault.scene()
    runner = web.AppRunner(scene.app(), shutdown_timeout=1)
    await runner.setup()
    try:
        async with asyncio.timeout(FAULT_SECONDS):
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            if not is_proxied:
                return await scene.play(url)
            return await _play_proxied(scene, url)
    except TimeoutError:
        return Outcome(f"nothing within {FAULT_SECONDS} s", is_right=False)
    finally:
        await runner.cleanup()


async def _play_proxied(scene: Scene, url: str) -> Outcome:
    flags = {"upstream": url, "listen": "127.0.0.1:0", "admin": "127.0.0.1:0"}
    config = load(flags=flags, environ={})
    proxy = await gateway.start(wiring.engine(config), config)
    try:
        return await scene.play(f"http://127.0.0.1:{proxy.port}")
    finally:
        await proxy.close()
