import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../../..');
/** Files whose elements take space of their own, or cover no controls. */
const BESIDE = [
  'bottom-pane.tsx',
  'session-tabs.tsx',
  'agent-board.tsx',
  'board-head.tsx',
  'shell.tsx',
  'navigation.tsx',
  'page-header.tsx',
];

it('every overlay has the OVERLAY attribute', () => {
  const files = ['app', 'components'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.tsx') && !BESIDE.includes(path.basename(name)))
      .map((name) => path.join(root, folder, name)),
  );
  const over = files.filter((file) => /[\s"'`:]z-\[?\d/.test(readFileSync(file, 'utf8')));
  expect(over.length).toBeGreaterThan(3);
  expect(over.filter((file) => !/\{\.\.\.(\(\w+ && )?OVERLAY/.test(readFileSync(file, 'utf8')))).toEqual([]);
});
