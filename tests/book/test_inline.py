"""Mathematics typed as text is set as it is read; everything else is left alone and harmless."""

from __future__ import annotations

import pytest

from btcnb.book.inline import inline_html, inline_myst


@pytest.mark.parametrize(
    ("typed", "html"),
    [
        ("√(2/S_max)", "√(2/<i>S</i><sub>max</sub>)"),
        ("Σ λ_i‖H_i‖²", "Σ <i>λ</i><sub>i</sub>‖<i>H</i><sub>i</sub>‖²"),
        ("N k_s^(L−1) d", "N <i>k</i><sub>s</sub><sup>L−1</sup> d"),
        ("γσ_min", "γ<i>σ</i><sub>min</sub>"),
        ("λ_{k+1}", "<i>λ</i><sub>k+1</sub>"),
        ("peak_mb and NMI_degree_0, a_b_c, moser.in_collapsed", "peak_mb and NMI_degree_0, a_b_c, moser.in_collapsed"),
        ("`S_max`", "<code>S_max</code>"),
        ("*so* <b>", "<em>so</em> &lt;b&gt;"),
        ("$a_b < 1$", '<span class="math notranslate nohighlight">\\(a_b &lt; 1\\)</span>'),
        (r"$\href{x}{y}$", r"$\href{x}{y}$"),
    ],
)
def test_html(typed: str, html: str) -> None:
    assert inline_html(typed) == html


def test_myst_keeps_its_own_code_and_formulas() -> None:
    assert inline_myst("of `S_max`, $S_max$, S_max and {doc}`x`") == (
        "of `S_max`, $S_max$, <i>S</i><sub>max</sub> and \\{doc\\}`x`"
    )
    assert inline_myst("λ_{k+1} < <b>") == "<i>λ</i><sub>k+1</sub> &lt; &lt;b&gt;"
