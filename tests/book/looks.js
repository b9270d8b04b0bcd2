// What a test asks of a page that is open: everything a reader would stumble over, as lists of short descriptions.
() => {
  const article = document.querySelector("article.bd-article") || document.body;
  const root = document.documentElement;
  const seen = (element) => element.getClientRects().length > 0;
  const short = (element) => `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") || ""}"> ` +
    (element.textContent || element.getAttribute("alt") || "").trim().replace(/\s+/g, " ").slice(0, 60);
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const boxed = (element) => {
    for (let box = element.parentElement; box && box !== root; box = box.parentElement) if (scrolls(box)) return true;
    return false;
  };

  const found = {wide: [], clipped: [], broken: [], raw: [], unset: [], wordless: [], empty: []};
  if (root.scrollWidth > root.clientWidth + 1) found.wide.push(`the page: ${root.scrollWidth} > ${root.clientWidth}`);
  for (const element of article.querySelectorAll("p, li, table, img, svg, pre, figure, mjx-container, div, h1, h2, h3")) {
    if (!seen(element)) continue;
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (box.right > root.clientWidth + 1 && !boxed(element) && !element.closest("mjx-container mjx-container, svg svg"))
      found.wide.push(short(element));
    if (/hidden|clip/.test(style.overflowX) && element.scrollWidth > element.clientWidth + 2 && element.clientWidth > 1)
      found.clipped.push(short(element));
  }

  for (const caption of article.querySelectorAll("caption")) {
    const box = caption.closest(".pst-scrollable-table-container") || root;
    if (seen(caption) && caption.getBoundingClientRect().width > box.clientWidth + 1) found.wide.push(short(caption));
  }

  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, style, mjx-container, svg, noscript")) continue;
    if (!parent.closest("pre, code") && /\\(?:[a-zA-Z]{2,}|[([])|\$[^$\s][^$]*\$|[_^]\{/.test(node.data))
      found.raw.push(node.data.trim().slice(0, 60));
    if (parent.closest("pre") || !seen(parent)) continue;
    for (const word of node.data.matchAll(/(?<![\p{L}\p{N}_.\/-])\p{L}{2,12}(?![\p{L}\p{N}_.\/-])/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set(Array.from(range.getClientRects(), (rect) => Math.round(rect.top)));
      if (lines.size > 1) found.broken.push(`${word[0]} in ${short(parent)}`);
    }
  }

  for (const formula of article.querySelectorAll("span.math, div.math"))
    if (!formula.querySelector("mjx-container")) found.unset.push(short(formula));
  for (const error of article.querySelectorAll("mjx-merror")) found.unset.push(short(error));
  for (const image of document.images) {
    if ((image.getAttribute("alt") || "").trim().length < 4) found.wordless.push(image.src.slice(-60));
    if (seen(image) && image.complete && !image.naturalWidth) found.empty.push(image.src.slice(-60));
  }
  for (const drawing of article.querySelectorAll("svg[role=img]"))
    if ((drawing.getAttribute("aria-label") || "").length < 4) found.wordless.push(short(drawing));
  return Object.fromEntries(Object.entries(found).filter(([, list]) => list.length).map(([k, v]) => [k, v.slice(0, 8)]));
}
