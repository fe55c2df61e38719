/**
 * Tells how high this page would like to be, whenever that changes: as high as its content, where it scrolls in itself.
 *
 * @returns stop
 */
export function watchHeight(tell: (height: number) => void): () => void {
  let told = 0;
  let asked = 0;
  const look = () => {
    asked = 0;
    const height = contentHeight();
    if (height === told) return;
    told = height;
    tell(height);
  };
  const soon = () => {
    asked ||= requestAnimationFrame(look);
  };
  const sizes = new ResizeObserver(soon);
  const nodes = new MutationObserver(() => {
    const scroller = scrollerOf();
    for (const child of scroller?.children ?? []) sizes.observe(child);
    soon();
  });
  sizes.observe(document.body);
  nodes.observe(document.body, { childList: true, subtree: true });
  soon();
  return () => {
    cancelAnimationFrame(asked);
    sizes.disconnect();
    nodes.disconnect();
  };
}

function scrollerOf(): Element | null {
  return document.querySelector('[role="log"], nav .overflow-y-auto');
}

/** All but what scrolls, and what that holds: its own height would grow with the frame and never shrink. */
function contentHeight(): number {
  const scroller = scrollerOf();
  const { clientHeight } = document.documentElement;
  if (scroller === null) return Math.ceil(document.body.scrollHeight);
  const top = scroller.getBoundingClientRect().top - scroller.scrollTop;
  const bottoms = [...scroller.children].map((child) => child.getBoundingClientRect().bottom);
  const held = Math.max(0, ...bottoms) - top;
  return Math.ceil(clientHeight - scroller.clientHeight + held);
}
