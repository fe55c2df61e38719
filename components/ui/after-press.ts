let isPointerDown = false;
const afterPresses = new Set<() => void>();

function onPressStart(): void {
  isPointerDown = true;
}

/**
 * The click follows the release. A blur of the window counts as a release, because the actual release happens outside
 * the window.
 */
function onPressEnd({ type, target }: Event): void {
  if (type === 'blur' && target !== window) return;
  setTimeout(() => {
    isPointerDown = false;
    const acts = [...afterPresses];
    afterPresses.clear();
    for (const act of acts) act();
  });
}

// Listens from the start, because a press is noticed only at its beginning. On touch screens, mouse events follow the
// pointer events.
if (typeof window !== 'undefined') {
  for (const kind of ['pointerdown', 'mousedown']) addEventListener(kind, onPressStart, { capture: true });
  for (const kind of ['pointerup', 'pointercancel', 'mouseup', 'dragend', 'blur']) {
    addEventListener(kind, onPressEnd, { capture: true });
  }
}

/**
 * Runs `act` once no press is in progress: now, or after its click. A press moves the focus at its start; whatever
 * disappears on blur would move the pressed control away before the click.
 *
 * @returns a function that cancels it
 */
export function afterPress(act: () => void): () => void {
  if (!isPointerDown) {
    act();
    return () => {};
  }
  afterPresses.add(act);
  return () => afterPresses.delete(act);
}
