import { endPage, hasPageEnded } from './browser-storage';

const listeners = new Set<() => void>();

/** Calls back when the page leaves, to remove what would outlive it on the screen. @returns unsubscribe */
export function onLeave(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** From here on the page stores and sends nothing, and the browser asks nothing about unfinished uploads. */
export function stopPage(): void {
  if (hasPageEnded()) return;
  endPage();
  for (const listener of listeners) listener();
  addEventListener('beforeunload', (event) => event.stopImmediatePropagation(), { capture: true });
}

/** Stops the page, takes it off the screen at once and loads it again, for the person who is signed in now. */
export function leavePage(): void {
  stopPage();
  document.documentElement.style.display = 'none';
  location.reload();
}
