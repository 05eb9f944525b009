"""Takes the pictures of the page to click, in Chromium: ``python scripts/explore_pictures.py``, a few seconds."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import sbnet as sb
from sbnet.explore.page import document
from sbnet.explore.server import Served, running

FOLDER = Path(__file__).parents[1] / "docs" / "_static"
SHOTS = {
    "light": {"viewport": {"width": 1320, "height": 860}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1320, "height": 860}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 375, "height": 760}, "color_scheme": "light", "device_scale_factor": 2},
    "drawing": {"viewport": {"width": 1320, "height": 860}, "color_scheme": "light", "device_scale_factor": 2},
}
EVIDENCE = {"fever": 1, "cough": 1, "runny-nose": 0}


def main() -> None:
    """Save a picture of each look; 128 colours are enough for flat surfaces."""
    network = sb.datasets.example_clinic()
    served = Served(network, document(network, "A made-up clinic", EVIDENCE, server=True), 0)
    with running(served) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, look in SHOTS.items():
            page = browser.new_page(**look)
            page.goto(address)
            page.wait_for_selector("#ask li")
            page.wait_for_timeout(500)
            if name == "phone":
                page.evaluate("document.getElementById('causes').scrollIntoView()")
            seen = page.locator("#drawing svg") if name == "drawing" else page
            picture = Image.open(io.BytesIO(seen.screenshot())).convert("RGB").quantize(128)
            picture.save(FOLDER / f"explore_{name}.png", optimize=True)
            print(FOLDER / f"explore_{name}.png")


if __name__ == "__main__":
    main()
