import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { root } from '../../lib/launch/paths.mjs';
import { hasDocsSite } from '../support/programs.mjs';

describe.skipIf(!hasDocsSite())('the docs site', () => {
  test('builds every page and has no dead link', { timeout: 180_000 }, async () => {
    await promisify(execFile)('npm', ['run', 'build'], { cwd: join(root, 'docs') });
    const dist = join(root, 'docs', '.vitepress', 'dist');
    for (const page of ['index', 'docs/self-host', 'docs/kinds/README', 'lib/protocol/PROTOCOL', 'CONTRIBUTING']) {
      expect([page, existsSync(join(dist, `${page}.html`))]).toEqual([page, true]);
    }
  });
});
