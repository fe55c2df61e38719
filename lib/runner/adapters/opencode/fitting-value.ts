import { truncateText } from '../writer/size-limits';

const MAX_TEXT_BYTES = 64 * 1024;
const MAX_BYTES = 256 * 1024;
const MAX_DEPTH = 8;
const MAX_FIELDS = 200;

/**
 * A value of the agent's, small enough for a record: long texts, lists and objects are cut, and the cut is said in them.
 * What fits comes out as it is.
 */
export function fittingValue(value: unknown): unknown {
  const fitted = shortened(value, 0);
  const bytes = JSON.stringify(fitted)?.length ?? 0;
  return bytes <= MAX_BYTES ? fitted : { cut: `${bytes.toLocaleString('en')} characters are not shown` };
}

function shortened(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return truncateText(value, MAX_TEXT_BYTES);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_DEPTH) return '…';
  if (Array.isArray(value)) {
    const kept = value.slice(0, MAX_FIELDS).map((one) => shortened(one, depth + 1));
    return kept.length === value.length ? kept : [...kept, `… ${value.length - kept.length} more`];
  }
  const entries = Object.entries(value);
  const kept = entries.slice(0, MAX_FIELDS).map(([name, one]) => [truncateText(name, 256), shortened(one, depth + 1)]);
  if (kept.length < entries.length) kept.push(['…', `${entries.length - kept.length} more`]);
  return Object.fromEntries(kept);
}
