"""A slider over precomputed pictures: interactive in a rendered book, offline, without a kernel.

Every frame is drawn when the chapter runs and embedded as an image; a few lines of script show one at a time. The
control is a native range input, so arrow keys, Home, End and screen readers work, and each frame brings its own
description.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
from IPython.display import display
from matplotlib.figure import Figure

from btcnb.book.figure_svg import figure_svg
from btcnb.errors import ParameterError


@dataclass(frozen=True)
class Frame:
    """One position of the slider.

    label: what the slider reads out at this position, such as "12 flipped pairs"
    alt:   the picture in words
    svg:   the picture
    """

    label: str
    alt: str
    svg: bytes


def frame(figure: Figure, label: str, alt: str) -> Frame:
    """Turn a matplotlib figure into a frame, and close it. Equal figures give equal bytes."""
    svg = figure_svg(figure).encode()
    plt.close(figure)
    return Frame(label, alt, svg)


def slider(frames: Sequence[Frame], title: str, start: int = 0) -> None:
    """Display `frames` under a slider called `title`, opened at position `start`."""
    display({"text/html": slider_html(frames, title, start), "text/plain": f"{title}: {len(frames)} frames"}, raw=True)


def slider_html(frames: Sequence[Frame], title: str, start: int = 0) -> str:
    """The slider as one self-contained piece of HTML; without scripts it shows frame `start`."""
    if not frames:
        raise ParameterError("a slider needs at least one frame.")
    if not 0 <= start < len(frames):
        raise ParameterError(f"start is {start}, but there are frames 0 to {len(frames) - 1}.")
    key = "slider-" + hashlib.sha256(b"".join(entry.svg for entry in frames) + title.encode()).hexdigest()[:10]
    pictures = "".join(_picture(entry, position == start) for position, entry in enumerate(frames))
    labels = json.dumps([entry.label for entry in frames], ensure_ascii=False).replace("<", "\\u003c")
    first = html.escape(frames[start].label, quote=True)
    name = html.escape(title)
    return f"""<div class="btcnb-slider" id="{key}" role="group" aria-label="{html.escape(title, quote=True)}">
<style>
#{key} img {{ width: 100%; height: auto; }}
#{key} .frame[hidden] {{ display: none; }}
#{key} .controls {{ display: flex; flex-wrap: wrap; gap: .6em; align-items: center; }}
#{key} label {{ flex: 1 0 100%; }}
#{key} input {{ flex: 1 1 12em; min-width: 8em; }}
#{key} output {{ font-variant-numeric: tabular-nums; font-weight: 600; }}
#{key} button {{ font: inherit; padding: 0 .7em; min-height: 2em; }}
</style>
{pictures}
<div class="controls">
<label for="{key}-range">{name}: <output for="{key}-range">{first}</output></label>
<button type="button" data-step="-1" aria-label="previous frame">◀</button>
<input id="{key}-range" type="range" min="0" max="{len(frames) - 1}" step="1" value="{start}" aria-valuetext="{first}">
<button type="button" data-step="1" aria-label="next frame">▶</button>
</div>
<script>
(function () {{
  const root = document.getElementById("{key}");
  if (!root) return;
  const labels = {labels};
  const frames = root.querySelectorAll(".frame"), range = root.querySelector("input");
  const output = root.querySelector("output");
  function show() {{
    const at = Number(range.value);
    frames.forEach((frame, position) => {{ frame.hidden = position !== at; }});
    output.textContent = labels[at];
    range.setAttribute("aria-valuetext", labels[at]);
  }}
  range.addEventListener("input", show);
  root.querySelectorAll("button").forEach((button) => button.addEventListener("click", () => {{
    range.value = Number(range.value) + Number(button.dataset.step);
    show();
  }}));
  show();
}})();
</script>
</div>"""


def _picture(entry: Frame, visible: bool) -> str:
    data = base64.b64encode(entry.svg).decode()
    hidden = "" if visible else " hidden"
    image = f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(entry.alt, quote=True)}">'
    return f'<div class="frame"{hidden}>{image}</div>\n'
