import { BUFFER_LIMITS, type BufferLimits } from './log-buffer';

const MI = 1024 * 1024;
const MIDDLING: BufferLimits = { ...BUFFER_LIMITS, lines: 200_000, chars: 64 * MI };
const SMALL: BufferLimits = { ...BUFFER_LIMITS, lines: 20_000, chars: 16 * MI };

/** How much of a log this device can hold: a million lines take some hundred MB, which a phone kills a tab for. */
export function limitsOfDevice(): BufferLimits {
  // In GiB; not every browser tells.
  const { deviceMemory } = navigator as Navigator & { deviceMemory?: number };
  if (deviceMemory === undefined) return matchMedia('(pointer: coarse)').matches ? MIDDLING : BUFFER_LIMITS;
  return deviceMemory >= 4 ? BUFFER_LIMITS : deviceMemory >= 1 ? MIDDLING : SMALL;
}
