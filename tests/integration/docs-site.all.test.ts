import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { root } from '../../lib/launch/paths.mjs';
import { hasDocsSite } from '../support/programs.mjs';

/** Where GitHub serves the site of the repository `owner/interlude`. */
const SITE = 'https://owner.github.io/interlude/';

describe.skipIf(!hasDocsSite())('the docs site', () => {
  test('builds every page and has no dead link', async () => {
    const env = { ...process.env, GITHUB_REPOSITORY: 'owner/interlude' };
    await promisify(execFile)('npm', ['run', 'build'], { cwd: join(root, 'docs'), env });
    const dist = join(root, 'docs', '.vitepress', 'dist');
    const names = readdirSync(dist, { recursive: true, encoding: 'utf8' });
    const files = names.filter((name) => statSync(join(dist, name)).isFile()).map((name) => name.replaceAll('\\', '/'));
    const pages = ['index', 'docs/self-host', 'docs/kinds/README', 'lib/protocol/PROTOCOL', 'CONTRIBUTING'];
    expect(files).toEqual(expect.arrayContaining(pages.map((page) => `${page}.html`)));

    const served = new Map(files.map((file) => [SITE + file.replace(/(^|\/)index\.html$|\.html$/, '$1'), file]));
    const dead: string[] = [];
    let checked = 0;
    for (const [address, page] of served) {
      const html = page.endsWith('.html') ? readFileSync(join(dist, page), 'utf8') : '';
      for (const [, href = ''] of html.matchAll(/<[a-z][^<>]* (?:href|src)="([^"]*)"/g)) {
        const { origin, pathname, hash } = new URL(href.replaceAll('&amp;', '&'), address);
        if (origin !== new URL(SITE).origin) continue;
        checked += 1;
        const file = served.get(origin + decodeURI(pathname));
        const id = hash && ` id="${decodeURIComponent(hash.slice(1))}"`;
        if (!file || !readFileSync(join(dist, file), 'utf8').includes(id)) dead.push(`${page}: ${href}`);
      }
    }
    expect(checked).toBeGreaterThan(1_000);
    expect(dead).toEqual([]);
  });
});
