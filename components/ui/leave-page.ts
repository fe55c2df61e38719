import { person } from './browser-storage';

const listeners = new Set<() => void>();

/** Calls back when the page leaves, to remove what would outlive it on the screen. @returns unsubscribe */
export function onLeave(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Takes the page off the screen at once and loads it again, for the person who is signed in now. From then on it stores
 * and sends nothing, and the browser asks nothing about unfinished uploads: they were another person's.
 */
export function leavePage(): void {
  if (person.hasLeft) return;
  person.hasLeft = true;
  document.documentElement.style.display = 'none';
  for (const listener of listeners) listener();
  addEventListener('beforeunload', (event) => event.stopImmediatePropagation(), { capture: true });
  location.reload();
}
