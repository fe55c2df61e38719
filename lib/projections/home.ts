import type { Home } from '@/lib/protocol/turn-places';

/** Its deltas so far are folded; a home that may not fold stays so. */
export function atRest(home: Home): Home {
  return isFoldable(home) ? { ...home, streaming: null } : home;
}

export function isFoldable({ streaming }: Home): boolean {
  return streaming !== 'never' && streaming !== 'chunks';
}
