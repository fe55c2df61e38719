import { existsSync, readFileSync } from 'node:fs';
import { RECORDED_KINDS } from '@interlude/runner/adapters/recordings';
import { KINDS } from '@interlude/runner/sources/kinds';
import { FEATURES, type Feature, limitsOf, type Support } from '@interlude/runner/sources/runner-kind';
import { describe, expect, test } from 'vitest';

const PAGE = readFileSync('docs/kinds/README.md', 'utf8');
const kinds = Object.entries(KINDS);

const word = (support: Support) =>
  support === true ? 'yes' : 'partly' in support ? 'partly' : 'needless' in support ? 'by itself' : 'no';

/** The table as docs/kinds/README.md has to have it. */
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

test('the table of kinds and features says what the kinds say', () => {
  expect(PAGE).toContain(table());
});

describe.each(kinds)(
  'the kind %s',
  (name, { features, title, help, flags = [], switches = [], acceptsPrompt = false, urlNamesAgent }) => {
    test('names in its help every option that it takes', () => {
      const common = ['session', 'agent', 'url', 'token', ...(name === 'hooks' ? [] : ['record'])];
      const addresses = urlNamesAgent ? ['dashboard'] : [];
      for (const flag of [...common, ...addresses, ...(acceptsPrompt ? ['prompt'] : []), ...flags, ...switches]) {
        expect(help).toMatch(new RegExp(`^  --${flag}\\b`, 'm'));
      }
    });

    test('has a page that says all that it can’t tell or do, in the words of its agents’ pages', () => {
      expect(existsSync(`docs/kinds/${name}.md`)).toBe(true);
      const page = readFileSync(`docs/kinds/${name}.md`, 'utf8').replaceAll(/\s+/g, ' ');
      for (const limit of limitsOf(features)) expect(page).toContain(limit.replaceAll(/\s+/g, ' '));
    });

    test('says each of these in a sentence, and how it is run', () => {
      for (const limit of limitsOf(features)) expect(limit).toMatch(/^[A-Z“].*[^.]\.$/s);
      expect(title).not.toBe('');
      expect(help).toContain(`runner ${name}`);
    });
  },
);

test('what a runner of a kind records can be replayed', () => {
  const recorded = Object.keys(RECORDED_KINDS);
  // The companion of terminals reads what is on disk already.
  expect(recorded).toEqual(expect.arrayContaining(kinds.map(([name]) => name).filter((name) => name !== 'hooks')));
});
