import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const pages = execFileSync('git', ['ls-files', '*.md', ':!tests'], { encoding: 'utf8', cwd: root }).trim().split('\n');
const read = (path: string | URL) => readFileSync(new URL(path, root), 'utf8');

/** Anchors of headings as GitHub generates them. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replaceAll(/^```[\s\S]*?^```/gm, '').match(/^#+ .+$/gm) ?? [];
  return new Set(
    headings.map((line) =>
      line
        .replace(/^#+ /, '')
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

describe.each(pages)('%s', (page) => {
  const text = read(page);

  test('links to existing files and headings', () => {
    for (const [, to = ''] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const { pathname, hash } = new URL(to, new URL(page, root));
      const file = new URL(`file://${pathname}`);
      expect([to, existsSync(file)]).toEqual([to, true]);
      if (hash) expect([to, anchorsOf(read(file)).has(decodeURIComponent(hash.slice(1)))]).toEqual([to, true]);
    }
  });

  test('names existing files', () => {
    const named = [...text.matchAll(/`((?:app|components|db|lib|tests|docs)\/[\w./\-[\]()]+)`/g)].map(
      ([, path = '']) => path,
    );
    expect(named.filter((path) => !existsSync(new URL(path, root)) && !path.includes('…'))).toEqual([]);
  });
});
