import { isObject, listOf } from '@interlude/protocol/fields';

/** Most operations of one patch that are applied. */
const MAX_OPERATIONS = 1_000;

/**
 * Applies a patch to a copy of a JSON value. What can't be applied is passed over: an agent's patch is no reason to lose
 * what is known.
 *
 * @see RFC 6902; pointers are RFC 6901
 */
export function applyPatch(value: unknown, patch: unknown): unknown {
  let root = structuredClone(value);
  for (const entry of listOf(patch).slice(0, MAX_OPERATIONS)) {
    if (!isObject(entry)) continue;
    const { op, path, from, value: given } = entry;
    const at = tokensOf(path);
    if (at === null) continue;
    if (op === 'add' || op === 'replace') root = put(root, at, structuredClone(given), op === 'add');
    else if (op === 'remove') root = take(root, at);
    else if (op === 'move' || op === 'copy') {
      const source = tokensOf(from);
      const found = source === null ? undefined : structuredClone(read(root, source));
      if (source === null || found === undefined) continue;
      if (op === 'move') root = take(root, source);
      root = put(root, at, found, true);
    }
  }
  return root;
}

function tokensOf(pointer: unknown): string[] | null {
  if (pointer === '') return [];
  if (typeof pointer !== 'string' || !pointer.startsWith('/')) return null;
  const tokens = pointer.slice(1).split('/');
  const plain = tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  return plain.includes('__proto__') ? null : plain;
}

function read(root: unknown, tokens: readonly string[]): unknown {
  let found = root;
  for (const token of tokens) {
    if (Array.isArray(found)) found = found[Number(token)];
    else found = isObject(found) && Object.hasOwn(found, token) ? found[token] : undefined;
  }
  return found;
}

function put(root: unknown, tokens: readonly string[], value: unknown, isAdded: boolean): unknown {
  const last = tokens.at(-1);
  if (last === undefined) return value;
  const parent = read(root, tokens.slice(0, -1));
  if (Array.isArray(parent)) {
    const at = last === '-' ? parent.length : Number(last);
    if (!Number.isInteger(at) || at < 0 || at > parent.length) return root;
    parent.splice(at, isAdded ? 0 : 1, value);
  } else if (isObject(parent)) parent[last] = value;
  return root;
}

function take(root: unknown, tokens: readonly string[]): unknown {
  const last = tokens.at(-1);
  if (last === undefined) return null;
  const parent = read(root, tokens.slice(0, -1));
  if (Array.isArray(parent)) {
    const at = Number(last);
    if (Number.isInteger(at) && at >= 0) parent.splice(at, 1);
  } else if (isObject(parent)) delete parent[last];
  return root;
}
