// Take from an open page what axe would walk through at every look and finds nothing in: the glyphs of set mathematics,
// which have no text of their own, and the coloured words of code beyond three listings for each kind of word.
() => {
  document.querySelectorAll("mjx-math, mjx-assistive-mml").forEach((formula) => formula.replaceChildren());
  const listings = new Map();
  for (const code of document.querySelectorAll(".highlight pre")) {
    const kinds = new Set(Array.from(code.querySelectorAll("span"), (word) => word.className));
    if ([...kinds].every((kind) => listings.get(kind) >= 3)) code.textContent = code.textContent;
    else kinds.forEach((kind) => listings.set(kind, (listings.get(kind) || 0) + 1));
  }
}
