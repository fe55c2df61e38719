import { format } from 'node:util';
import { afterAll, afterEach, beforeEach, type TestContext } from 'vitest';

/**
 * A set-up file that fails whatever prints an error or a warning it does not expect: React's, Node's and lines of the
 * server's log. A test that expects one replaces the method (`vi.spyOn(console, 'error').mockImplementation(…)`) and
 * asserts on what was said.
 */
const METHODS = ['error', 'warn'] as const;
const REAL = Symbol.for('interlude.console');

type Console = Pick<typeof console, (typeof METHODS)[number]>;

/** The methods as vitest made them: set-up files run once for each file of a worker. */
const held = globalThis as { [REAL]?: Console };
held[REAL] ??= { error: console.error, warn: console.warn };

let said: string[] = [];
for (const method of METHODS) console[method] = (...given) => void said.push(`console.${method}: ${format(...given)}`);

const warned = (warning: Error) => said.push(`process.emitWarning: ${warning.stack ?? warning.message}`);
process.on('warning', warned);

/** @throws Error with what was printed since the last call */
function expectQuiet(hasFailed: boolean): void {
  const lines = said;
  said = [];
  if (lines.length === 0) return;
  const text = lines.join('\n');
  // it may say why
  if (hasFailed) held[REAL]?.error(text);
  else throw new Error(`printed, and not expected:\n${text}`);
}

beforeEach(() => expectQuiet(false));
afterEach(({ task }: TestContext) => expectQuiet(task.result?.state === 'fail'));
afterAll(() => {
  process.off('warning', warned);
  // Printed while the file's servers closed: no test is at fault.
  said = [];
});

/** React warns of elements that the browser does not know. happy-dom does not know this one, which browsers do. */
if (typeof HTMLUnknownElement !== 'undefined') {
  Object.defineProperty(HTMLUnknownElement.prototype, Symbol.toStringTag, {
    configurable: true,
    get(this: Element) {
      return this.localName === 'search' ? 'HTMLElement' : 'HTMLUnknownElement';
    },
  });
}
