// Faults that axe-core calls serious or critical, as short descriptions, in one pass over the page.
// only: rules that are asked for besides the contrast of texts; all of them if it is empty.
// Contrast is judged at some words for each pair of ink and ground: a page has thousands of words, and some dozen such
// pairs.
async (only) => {
  const grounds = new Map();
  const ground = (element) => {
    if (!element) return "page";
    if (!grounds.has(element)) {
      const style = getComputedStyle(element), colour = style.backgroundColor, faint = style.opacity !== "1";
      const clear = /, 0\)$|transparent/.test(colour) && style.backgroundImage === "none" && !faint;
      const through = /^rgba/.test(colour) || faint;
      const own = `${colour} ${style.backgroundImage} ${style.opacity} `;
      grounds.set(element, clear ? ground(element.parentElement) : own + (through ? ground(element.parentElement) : ""));
    }
    return grounds.get(element);
  };
  const kinds = new Map();
  for (const element of document.body.querySelectorAll("*")) {
    element.removeAttribute("data-sample");
    const written = Array.from(element.childNodes).some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!written || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const kind = [style.color, style.fontSize, style.fontWeight, style.textShadow, ground(element)].join(" ");
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push(element);
  }
  for (const all of kinds.values())
    for (const third of [0, 1, 2]) all[Math.floor((third * all.length) / 3)].dataset.sample = "";
  axe.configure({rules: [{id: "color-contrast", selector: "[data-sample]"}]});
  const options = {resultTypes: ["violations"], preload: false};
  if (only.length) options.runOnly = {type: "rule", values: [...new Set(["color-contrast", ...only])]};
  const found = (await axe.run(document, options)).violations;
  const said = (node) => `${node.html.slice(0, 140)} | ${(node.any[0]?.message || "").slice(0, 160)}`;
  return found
    .filter((fault) => ["serious", "critical"].includes(fault.impact))
    .map((fault) => `${fault.id}: ${fault.nodes.slice(0, 4).map(said).join("\n    ")} (${fault.nodes.length})`);
}
