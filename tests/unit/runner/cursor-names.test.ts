import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../../lib/launch/paths.mjs';

test('keeps the cursor names that outboxes of earlier versions store', () => {
  const folder = join(root, 'lib/runner');
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .filter((text) => /cursors?\b/.test(text));
  const names = sources.flatMap((text) => [
    ...text.matchAll(/^(?:export )?const (?:[A-Z_]+ = '([a-z-]+:)'|(?:\w+_)?CURSOR = '([a-z-]+)');$/gm),
  ]);
  expect(names.map(([, prefix, name]) => prefix ?? name).sort()).toEqual([
    'acp-session:',
    'agentapi-place:',
    'agui-ended:',
    'agui-history:',
    'claude-session:',
    'codex-thread:',
    'command:',
    'demo',
    'log-level',
    'open-work:',
    'opencode-begun:',
    'opencode-place:',
    'opencode-said:',
    'opencode-told:',
    'replay',
    'report:',
    'task-output:',
    'tool-calls:',
    'transcript:',
    'unreachable',
  ]);
});
