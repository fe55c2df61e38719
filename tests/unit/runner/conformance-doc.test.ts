import { readFileSync } from 'node:fs';
import { type Check, GROUPS } from '@interlude/conformance/check';
import { RUNNER_CHECKS, SERVER_CHECKS } from '@interlude/conformance/command';
import { describe, expect, test } from 'vitest';

const page = readFileSync(new URL('../../../docs/conformance.md', import.meta.url), 'utf8');
const protocol = readFileSync(new URL('../../../lib/protocol/PROTOCOL.md', import.meta.url), 'utf8');

/** The checks that the page lists for a mode, by group. */
function listed(mode: string): [string, string[]][] {
  const [, section = ''] = page.split(`## What \`${mode}\` checks\n`);
  const [text = ''] = section.split('\n## ');
  return [...text.matchAll(/^\*\*(.+)\*\*\n((?:- .+\n?)+)/gm)].map(([, group = '', list = '']) => {
    return [
      group,
      list
        .trim()
        .split('\n- ')
        .map((line) => line.replace(/^- /, '')),
    ];
  });
}

describe.each([
  ['server', SERVER_CHECKS],
  ['runner', RUNNER_CHECKS],
] as [string, readonly Check<never>[]][])('what `%s` checks', (mode, table) => {
  test('match docs/conformance.md', () => {
    const byGroup = GROUPS.map((group) => [
      group,
      table.filter((check) => check.group === group).map(({ name }) => name),
    ]);
    expect(listed(mode)).toEqual(byGroup);
  });

  test('cover every group under unique names', () => {
    for (const group of GROUPS) expect(table.some((check) => check.group === group)).toBe(true);
    const names = table.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z0-9].{20,}[^.]$/);
  });

  test('name existing sections of PROTOCOL.md', () => {
    for (const { why } of table) {
      const named = [...why.matchAll(/(?:^|and )(\d), ([A-Z][^,]*?)(?=,? and \d|, \d+|$)/g)];
      expect([why, named.length]).toEqual([why, why.split(/and (?=\d, )/).length]);
      for (const [, number, title] of named) {
        const [, chapter = ''] = protocol.split(new RegExp(`^## ${number}\\. `, 'm'));
        const titles = [...`## ${chapter.split(/^## /m)[0]}`.matchAll(/^(?:#+ |\*\*)(.+?)(?:\*\*|$)/gm)].map(
          ([, one]) => one,
        );
        const known = titles.map((one = '') => one.replace(/[`:.]/g, ''));
        expect([why, known.some((one) => one.startsWith(title ?? ''))]).toEqual([why, true]);
      }
    }
  });
});
