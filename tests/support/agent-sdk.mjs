/**
 * The Agent SDK for the tests that run the real Claude Code. Interlude itself does not need it and it is large, so it goes
 * to a folder of its own, and only when these tests are run.
 */
import { join } from 'node:path';
import { root } from '../../lib/launch/paths.mjs';
import { loadTypescript } from '../../lib/launch/typescript.mjs';

/** The folder that the SDK is installed into. */
export function sdkFolder() {
  return process.env.INTERLUDE_CLAUDE_SDK_DIR ?? join(root, 'node_modules', '.cache', 'interlude-agents');
}

/** @returns {Promise<{ folder: string } | { missing: string }>} where the SDK is, or why it is not */
export async function ensureAgentSdk() {
  const { loadClaudeSdk, wantedClaudeSdk } = await loadTypescript('lib/runner/sources/claude/claude-sdk.ts');
  const { ensurePackage } = await loadTypescript('lib/runner/cli/install-package.ts');
  const named = process.env.INTERLUDE_CLAUDE_SDK_DIR;
  const folder = sdkFolder();
  const wanted = { ...wantedClaudeSdk('', folder), isOwn: named === undefined };
  const ensured = await ensurePackage(wanted, () => loadClaudeSdk('', folder), true, new AbortController().signal);
  return ensured.state === 'ready' ? { folder } : { missing: ensured.why };
}
