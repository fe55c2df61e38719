import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** By importing file: imports that break the rules or try to evade them. */
const REFUSED: Record<string, string> = {
  'lib/protocol/by-alias.ts': `import { x } from '@/db/client'; x;`,
  'lib/protocol/by-path.ts': `import { x } from '../../db/client'; x;`,
  'lib/protocol/by-a-long-way.ts': `import { x } from '@/lib/protocol/../../db/client'; x;`,
  'lib/protocol/as-type.ts': `import type { X } from '../../db/client'; export const x: X = 1;`,
  'lib/protocol/in-a-type.ts': `export const x: import('../../db/client').X = 1;`,
  'lib/protocol/later.ts': `export const x = () => import('../../db/client');`,
  'lib/protocol/by-template.ts': 'export const x = () => import(`../../db/client`);',
  'lib/protocol/computed.ts': `export const x = (name: string) => import(name);`,
  'lib/protocol/handed-on.ts': `export { x } from '../../db/client';`,
  'lib/protocol/all-handed-on.ts': `export * from '../../db/client';`,
  'lib/protocol/required.mjs': `export const x = require('../../db/client');`,
  'lib/protocol/by-comment.mjs': `/** @type {import('../../db/client').X} */ export const x = 1;`,
  'lib/protocol/a-package.ts': `import x from 'react'; x;`,
  'lib/protocol/into-packages.ts': `import x from '../../node_modules/react/index.js'; x;`,
  'lib/protocol/from-tests.ts': `import x from '@/tests/support/temp-dir'; x;`,
  'lib/protocol/from-the-root.ts': `import x from '../../proxy'; x;`,
  'lib/protocol/hashes.ts': `import x from '@noble/hashes/sha2'; x;`,
  'lib/server/queries/with-node.ts': `import x from 'node:path'; x;`,
  'lib/protocol/projections/digest.ts': `import x from '../request-digest'; x;`,
  'lib/runner/deep/server.ts': `import x from '../../server/queries/health'; x;`,
  'components/tasks/other.ts': `import x from '../transcript/turn'; x;`,
  'components/ui/with-domain.ts': `import x from '@/components/live/stream'; x;`,
  'components/inbox/inbox-items.ts': `import x from '@interlude/protocol/redaction/find-secrets'; x;`,
  'app/api/opens.ts': `import x from '@/db/client'; x;`,
  'lib/unheard-of/any.ts': `import x from '@interlude/protocol/sse'; x;`,
  'lib/server/commands/round.ts': `import { there } from './there'; export const round = () => there();`,
  'lib/server/commands/there.ts': `import { round } from './round'; export const there = () => round();`,
};
const ALLOWED: Record<string, string> = {
  'db/open-file.ts': `import x from 'node:path'; export { x };`,
  'db/client.ts': `import x from './migrate'; export type X = number; export { x };`,
  'lib/protocol/sse.ts': `import * as z from 'zod'; export default z;`,
  'lib/protocol/request-digest.ts': `import x from '@noble/hashes/sha2'; import y from './sse'; export default [x, y];`,
  'lib/server/commands/asks.ts': `import x from '@interlude/protocol/request-digest'; import { x as y } from '../../../db/client'; x; y;`,
  'components/tasks/task-card.ts': `import x from '@/components/sessions/title'; import y from '../ui/glyph'; x; y;`,
  'app/page.ts': `import x from '@/components/tasks/task-card'; import y from '@/lib/server/queries/health'; x; y;`,
};

describe('the import rules', () => {
  const folder = mkdtempSync(join(tmpdir(), 'interlude-test-'));
  let refused: Set<string>;

  beforeAll(async () => {
    const repository = process.cwd();
    for (const [file, text] of Object.entries({ ...REFUSED, ...ALLOWED })) {
      mkdirSync(join(folder, dirname(file)), { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    mkdirSync(join(folder, 'tests'));
    for (const file of ['.oxlintrc.imports.json', 'tests/import-rules.mjs', 'tsconfig.json']) {
      copyFileSync(join(repository, file), join(folder, file));
    }
    symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
    const linter = join(repository, 'node_modules/oxlint/bin/oxlint');
    const args = [linter, '-c', '.oxlintrc.imports.json', '--format', 'json', 'app', 'components', 'lib', 'db'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder }).catch((error) => error);
    const { diagnostics } = JSON.parse(stdout) as { diagnostics: { filename: string }[] };
    refused = new Set(diagnostics.map(({ filename }) => filename));
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(Object.entries(REFUSED))('refuse %s: %s', (file) => {
    expect(refused).toContain(file);
  });

  it.each(Object.entries(ALLOWED))('allow %s: %s', (file) => {
    expect(refused).not.toContain(file);
  });
});
