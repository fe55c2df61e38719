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
    ...text.matchAll(
      /^(?:export )?const (?:\w+_)?(?:CURSOR|SESSION|POSITION) = '([a-z-]+)';$|(?<=(?:=|,|return) \[?)['`]([a-z-]+:)(?:'|\$\{sessionId\}`)/gm,
    ),
  ]);
  expect(names.map(([, name, prefix]) => name ?? prefix).sort()).toEqual([
    'acp-session:',
    'agentapi-place:',
    'agentapi-session',
    'agui-ended:',
    'agui-history:',
    'agui-session',
    'claude-in-hand:',
    'claude-session:',
    'codex-ended:',
    'codex-thread:',
    'codex-wake-rule:',
    'codex-wakes-in-a-row:',
    'command:',
    'commands-position',
    'demo',
    'first-message:',
    'in-hand:',
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
