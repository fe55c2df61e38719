import { format } from 'node:util';
import { afterAll, afterEach, beforeEach, type TestContext } from 'vitest';

/**
 * A setup file that fails tests which print an unexpected error or warning: from React, Node or the server's log. A
 * test that expects one replaces the method (`vi.spyOn(console, 'error').mockImplementation(…)`) and asserts on the
 * calls.
 */
const METHODS = ['error', 'warn'] as const;
const REAL = Symbol.for('interlude.console');

type Console = Pick<typeof console, (typeof METHODS)[number]>;

/** vitest's methods, saved once, because setup files run once per test file. */
const held = globalThis as { [REAL]?: Console };
held[REAL] ??= { error: console.error, warn: console.warn };

let said: string[] = [];
for (const method of METHODS) console[method] = (...given) => void said.push(`console.${method}: ${format(...given)}`);

const warned = (warning: Error) => said.push(`process.emitWarning: ${warning.stack ?? warning.message}`);
process.on('warning', warned);

/** @throws Error with the output since the last call */
function expectQuiet(hasFailed: boolean): void {
  const lines = said;
  said = [];
  if (lines.length === 0) return;
  const text = lines.join('\n');
  // it may explain the failure
  if (hasFailed) held[REAL]?.error(text);
  else throw new Error(`unexpected output:\n${text}`);
}

beforeEach(() => expectQuiet(false));
afterEach(({ task }: TestContext) => expectQuiet(task.result?.state === 'fail'));
afterAll(() => {
  process.off('warning', warned);
  // Printed while the file's servers closed, after all tests.
  said = [];
});

/** React warns about unknown elements. happy-dom doesn't know `search`, unlike browsers. */
if (typeof HTMLUnknownElement !== 'undefined') {
  Object.defineProperty(HTMLUnknownElement.prototype, Symbol.toStringTag, {
    configurable: true,
    get(this: Element) {
      return this.localName === 'search' ? 'HTMLElement' : 'HTMLUnknownElement';
    },
  });
}
