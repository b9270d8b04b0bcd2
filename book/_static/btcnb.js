// A box that scrolls sideways can be reached by keyboard, and says what it is; one that need not scroll is no stop.
(function () {
  const BOXES = ".bd-article .pst-scrollable-table-container, .bd-article mjx-container, .bd-article .cell_output .output, " +
    ".bd-article .text_html, .bd-article pre, .bd-article figure";
  function settle() {
    document.querySelectorAll(BOXES).forEach((box) => {
      const scrolls = box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(box).overflowX);
      if (scrolls && box.tabIndex < 0) {  // the theme looks once, at the first width
        box.tabIndex = 0;
        box.dataset.stop = "";
        if (box.tagName === "DIV" && !box.hasAttribute("role")) {
          box.setAttribute("role", "group");
          box.setAttribute("aria-label", "wider than the page: scrolls sideways");
        }
      } else if (!scrolls && "stop" in box.dataset) {
        ["tabindex", "data-stop"].forEach((name) => box.removeAttribute(name));
      }
    });
  }
  let waiting;
  function soon() {  // once a frame, however often a window tells that it changes
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(settle);
  }
  window.addEventListener("load", () => (window.MathJax?.startup?.promise || Promise.resolve()).then(settle));
  window.addEventListener("resize", soon);
  document.addEventListener("toggle", soon, true);
})();
