import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { SpawnedProcess, SpawnRequest } from './cli-process';

/**
 * As much of the Agent SDK as is used here, said by ourselves: the package is installed by whoever wants it, so neither
 * its code nor its types may be needed to build or run the rest.
 *
 * @see `@anthropic-ai/claude-agent-sdk` 0.3.329
 */
export const CLAUDE_SDK = '@anthropic-ai/claude-agent-sdk';

export interface ClaudeSdk {
  query(request: { prompt: AsyncIterable<UserMessage>; options: QueryOptions }): ClaudeQuery;
}

/** Reading it to its end is reading the process to its end. */
export interface ClaudeQuery extends AsyncIterable<unknown> {
  /** @returns the uuids of messages that still wait, where the CLI says so */
  interrupt(): Promise<{ still_queued?: string[] } | undefined>;
  stopTask(taskId: string): Promise<void>;
  /** Ends the CLI: its input at once, itself about two seconds later. */
  close(): void;
}

export interface UserMessage {
  type: 'user';
  message: { role: 'user'; content: { type: 'text'; text: string }[] };
  parent_tool_use_id: null;
  uuid: string;
}

export const PERMISSION_MODES = ['default', 'acceptEdits', 'bypassPermissions', 'plan', 'dontAsk', 'auto'] as const;
export type PermissionMode = (typeof PERMISSION_MODES)[number];

export type PermissionResult =
  | { behavior: 'allow'; updatedInput: Record<string, unknown>; updatedPermissions?: unknown[] }
  | { behavior: 'deny'; message: string };

export interface PermissionContext {
  signal: AbortSignal;
  toolUseID?: string;
  requestId?: string;
  suggestions?: unknown[];
  suppressAlwaysAllowRule?: boolean;
  [detail: string]: unknown;
}

export interface QueryOptions {
  cwd: string;
  /** Replaces the environment of this process. */
  env: Record<string, string | undefined>;
  model?: string;
  permissionMode?: PermissionMode;
  allowDangerouslySkipPermissions?: boolean;
  settingSources: ('user' | 'project' | 'local')[];
  systemPrompt: { type: 'preset'; preset: 'claude_code' };
  includePartialMessages: true;
  /** Tasks are stopped one by one, so an interrupt spares subagents that run in the background. */
  perTaskStopAffordance: true;
  sessionId?: string;
  resume?: string;
  canUseTool?: (tool: string, input: Record<string, unknown>, context: PermissionContext) => Promise<PermissionResult>;
  spawnClaudeCodeProcess: (request: SpawnRequest) => SpawnedProcess;
}

const packageRoot = fileURLToPath(new URL('../../../..', import.meta.url));

/** Where the SDK is looked for beside Interlude's own packages. */
export function agentsFolder(dataDir: string): string {
  return join(dataDir, 'agents');
}

export interface InstalledSdk {
  sdk: ClaudeSdk;
  /** Whether a program belongs to this install: the CLI that the SDK brings. */
  owns(program: string): boolean;
}

/**
 * The SDK that is installed in one of these folders, by default Interlude's own. Its code runs in the runner, beside the
 * token, so the folder an agent works in is none of them, nor is any folder above one of these, where Node itself would
 * go on looking.
 *
 * @param named the one folder to look in
 * @returns null where it is not installed
 */
export async function loadClaudeSdk(dataDir: string, named?: string): Promise<InstalledSdk | null> {
  for (const folder of named === undefined ? [agentsFolder(dataDir), packageRoot] : [named]) {
    const packages = join(folder, 'node_modules');
    const file = resolveIn(packages);
    if (file === null) continue;
    // where its files lie, which a link may have put elsewhere
    const beside = file.slice(0, file.lastIndexOf(`${sep}node_modules${sep}`));
    const own = [realpathSync(packages), join(beside, 'node_modules')];
    return {
      sdk: (await import(pathToFileURL(file).href)) as ClaudeSdk,
      owns: (program) => own.some((place) => isWithin(place, program)),
    };
  }
  return null;
}

function resolveIn(packages: string): string | null {
  const home = join(packages, ...CLAUDE_SDK.split('/'));
  if (!existsSync(join(home, 'package.json'))) return null;
  try {
    const file = createRequire(join(packages, 'package.json')).resolve(CLAUDE_SDK);
    return isWithin(realpathSync(home), file) ? file : null;
  } catch {
    return null;
  }
}

function isWithin(folder: string, path: string): boolean {
  try {
    return realpathSync(path).startsWith(folder + sep);
  } catch {
    return false;
  }
}
