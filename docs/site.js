// What scrolls sideways, wide code and wide tables, can be reached and scrolled by the keyboard.
// The theme puts the frames around tables once the page is there, so this comes after it.
function makeScrollable() {
  for (const frame of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) {
    if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
    else frame.removeAttribute("tabindex");
  }
}

for (const event of ["load", "resize"]) window.addEventListener(event, makeScrollable);
