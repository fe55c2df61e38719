/**
 * Strings that UTF-8 can hold. JSON can carry half a surrogate pair (`"\ud83d"`, a text that was cut inside an emoji),
 * and JavaScript does not mind; but a database that is asked for such a text, or HTML, can't have it. So half a pair
 * becomes U+FFFD where a text comes in, and nobody behind that door has to think of it again.
 */

/** An escape of one half of a pair, as JSON may have it. A text without one has no half, whatever it is. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/** Whether what this JSON says may have half a pair in it. Where not, there is nothing to walk through. */
export function mayHaveHalves(json: string): boolean {
  return SURROGATE_ESCAPE.test(json) || !json.isWellFormed();
}

/**
 * `JSON.parse` whose strings, keys too, are well-formed.
 * @throws SyntaxError as JSON.parse does
 */
export function parseWellFormed(json: string): unknown {
  const value: unknown = JSON.parse(json);
  return mayHaveHalves(json) ? wellFormed(value) : value;
}

/** `JSON.stringify` of the value with well-formed strings. */
export function stringifyWellFormed(value: unknown): string {
  const text = JSON.stringify(value);
  // of a whole pair there is never an escape
  return SURROGATE_ESCAPE.test(text) ? JSON.stringify(wellFormed(JSON.parse(text))) : text;
}

/** The value with well-formed strings: itself where nothing had to be mended. It recurses as deep as the value goes. */
export function wellFormed<T>(value: T): T {
  return mended(value) as T;
}

function mended(value: unknown): unknown {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return mendedList(value);
  const names = new Names();
  let isSame = true;
  const entries = Object.entries(value).map(([key, before]): [string, unknown] => {
    const after = mended(before);
    const name = key.isWellFormed() ? key : names.of(key, value);
    if (after !== before || name !== key) isSame = false;
    return [name, after];
  });
  return isSame ? value : Object.fromEntries(entries);
}

function mendedList(list: readonly unknown[]): unknown {
  const after = list.map(mended);
  return after.every((entry, index) => entry === list[index]) ? list : after;
}

/** Two keys that differ in a half only would become one: the second gets a number, so that nothing is lost. */
class Names {
  readonly #used = new Map<string, number>();

  of(key: string, owner: object): string {
    const name = key.toWellFormed();
    for (let count = this.#used.get(name) ?? 0; ; count += 1) {
      const tried = count === 0 ? name : `${name}${count + 1}`;
      if (Object.hasOwn(owner, tried)) continue;
      this.#used.set(name, count + 1);
      return tried;
    }
  }
}
