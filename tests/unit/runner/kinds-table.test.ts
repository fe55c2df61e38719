import { existsSync, readFileSync } from 'node:fs';
import { RECORDED_KINDS } from '@interlude/runner/adapters/recordings';
import { KINDS } from '@interlude/runner/sources/kinds';
import { FEATURES, type Feature, limitsOf, type Support } from '@interlude/runner/sources/runner-kind';
import { describe, expect, test } from 'vitest';

const PAGE = readFileSync('docs/kinds/README.md', 'utf8');
const kinds = Object.entries(KINDS);

const word = (support: Support) =>
  support === true ? 'yes' : 'partly' in support ? 'partly' : 'needless' in support ? 'by itself' : 'no';

/** The expected table of docs/kinds/README.md. */
function table(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    row(['', ...kinds.map(([name]) => `[${name}](${name}.md)`)]),
    row(['---', ...kinds.map(() => '---')]),
    ...Object.entries(FEATURES).map(([feature, what]) =>
      row([what, ...kinds.map(([, { features }]) => word(features[feature as Feature]))]),
    ),
  ].join('\n');
}

test('docs/kinds/README.md has the table of kinds and features', () => {
  expect(PAGE).toContain(table());
});

describe.each(kinds)(
  'the kind %s',
  (name, { features, help, flags = [], switches = [], acceptsPrompt = false, urlNamesAgent }) => {
    test('lists every option in its help', () => {
      const common = ['session', 'agent', 'url', 'token', ...(name === 'hooks' ? [] : ['record'])];
      const addresses = urlNamesAgent ? ['dashboard'] : [];
      for (const flag of [...common, ...addresses, ...(acceptsPrompt ? ['prompt'] : []), ...flags, ...switches]) {
        expect(help).toMatch(new RegExp(`^  --${flag}\\b`, 'm'));
      }
    });

    test('has a page with all its limits', () => {
      expect(existsSync(`docs/kinds/${name}.md`)).toBe(true);
      const page = readFileSync(`docs/kinds/${name}.md`, 'utf8').replaceAll(/\s+/g, ' ');
      for (const limit of limitsOf(features)) expect(page).toContain(limit.replaceAll(/\s+/g, ' '));
    });

    test('words each limit as a sentence', () => {
      for (const limit of limitsOf(features)) expect(limit).toMatch(/^[A-Z“].*[^.]\.$/s);
      expect(help).toContain(`runner ${name}`);
    });
  },
);

test('every kind with recordings can be replayed', () => {
  const recorded = Object.keys(RECORDED_KINDS);
  // The companion of terminals reads existing files.
  expect(recorded).toEqual(expect.arrayContaining(kinds.map(([name]) => name).filter((name) => name !== 'hooks')));
});
