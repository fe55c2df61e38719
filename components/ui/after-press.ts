/**
 * A press takes the focus away before it is over, and a hand takes a tenth of a second for it. What disappears with the
 * focus would move what is pressed from under the pointer, and the press would hit nothing.
 */

let isDown = false;
const waiting = new Set<() => void>();

function begin(): void {
  isDown = true;
}

/** Its click comes right behind the release. Leaving the window counts as one: the real one happens outside. */
function end({ type, target }: Event): void {
  if (type === 'blur' && target !== window) return;
  setTimeout(() => {
    isDown = false;
    const acts = [...waiting];
    waiting.clear();
    for (const act of acts) act();
  });
}

// From the start: a press is known only to those who saw it begin. One by touch tells its pointer's end first, and then
// what a mouse would have done.
if (typeof window !== 'undefined') {
  for (const kind of ['pointerdown', 'mousedown']) window.addEventListener(kind, begin, { capture: true });
  for (const kind of ['pointerup', 'pointercancel', 'mouseup', 'dragend', 'blur']) {
    window.addEventListener(kind, end, { capture: true });
  }
}

/** Acts once no press is under way: now, or after its click. @returns takes it back */
export function afterPress(act: () => void): () => void {
  if (!isDown) {
    act();
    return () => {};
  }
  waiting.add(act);
  return () => waiting.delete(act);
}
