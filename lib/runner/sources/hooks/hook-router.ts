import { compact, type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { toolTitle } from '../../adapters/claude/requests';
import type { HookClaim } from '../../adapters/claude/stop-hooks';
import type { HookCall } from '../../host/control-port';
import type { PendingReply } from '../../host/pending-replies';
import type { MessageInbox } from './message-inbox';
import { stopDecision } from './message-inbox';
import type { PermissionHooks } from './permission-hooks';
import type { SessionMirror } from './session-mirror';

/**
 * Applies each hook of a terminal session to its mirror and decides what the hook prints. The agent waits, so decisions
 * use memory only; just a hold is stored first, unless the disk is slow. A hook with a waiting time, which runs beside
 * a question in the terminal, is answered once a person has.
 *
 * @see the hooks' stdin, CLI 2.1.329 and 2.1.332: tests/fixtures/recordings/hooks
 */
export interface HookRouterOptions {
  /** The mirror of a session; null if it is not followed. */
  mirror: (sessionId: string, file: string) => SessionMirror | null;
  owed: () => readonly PendingReply[];
  inbox: MessageInbox;
  permissions: PermissionHooks;
  /** Hint that the agent can listen while idle; null if not needed. */
  offer: (mirror: SessionMirror) => string | null;
  log: (level: 'debug' | 'info', message: string) => void;
}

export function routeHook(call: HookCall, options: HookRouterOptions): string | Promise<string> {
  const { event, input, pid, at, from = null } = call;
  const sessionId = textOf(input.session_id);
  const file = textOf(input.transcript_path);
  if (sessionId === null || file === null) return '';
  const mirror = options.mirror(sessionId, file);
  if (mirror === null) return '';
  const isOfOldProcess = !mirror.hookRan(pid, file, at);
  if (isOfOldProcess && event === 'SessionEnd') return '';
  if (from !== null) mirror.startedAs(from);
  options.log('debug', `${event} ${sessionId}`);
  const answer = ROUTES.get(event)?.(mirror, call, claimOf(input, at), options) ?? '';
  void mirror.step();
  return answer;
}

/** @param at time of the hook by its own clock */
export function claimOf(input: Fields, at: number | null): HookClaim {
  return { at, promptId: textOf(input.prompt_id) };
}

type Route = (
  mirror: SessionMirror,
  call: HookCall,
  claim: HookClaim,
  options: HookRouterOptions,
) => Promise<string> | undefined;

/** How long the agent may wait for the disk. The hook gives up after 900 ms. */
const STORED_MS = 300;

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  [
    'SessionStart',
    (mirror, { input }, claim) => {
      // A compaction continues the session in the middle of its work.
      if (input.source !== 'compact') mirror.began(claim);
      return undefined;
    },
  ],
  ['UserPromptSubmit', (mirror, _call, claim) => void mirror.prompted(claim)],
  ['Stop', stop],
  ['StopFailure', (mirror, { input }, claim) => void mirror.stopped(failureOf(input), lastWordsOf(input), claim)],
  ['PreCompact', (mirror, _call, claim) => void mirror.report('compacting', claim)],
  ['PostCompact', (mirror, _call, claim) => void mirror.report(mirror.openRunId === null ? 'idle' : 'busy', claim)],
  ['PermissionRequest', asked],
  ['SessionEnd', (mirror, { input }, claim) => void mirror.end(endOf(textOf(input.reason)), claim)],
]);

function asked(mirror: SessionMirror, call: HookCall, _claim: HookClaim, { permissions }: HookRouterOptions) {
  const { input, withinMs, signal } = call;
  const tool = textOf(input.tool_name);
  if (tool === null) return undefined;
  const toolInput = fieldsOf(input.tool_input);
  const waitsMs = mirror.isLeft ? null : withinMs;
  // Titles are reported once, so a request answerable here does not mention the terminal.
  const title = waitsMs === null ? `${toolTitle(tool)}: answer it in the terminal` : undefined;
  const expiresAt = waitsMs === null ? undefined : Date.now() + waitsMs;
  const output =
    waitsMs === null
      ? undefined
      : permissions.hold({
          ...{ sessionId: mirror.sessionId, tool, input: toolInput, withinMs: waitsMs, signal },
          suggestions: listOf(input.permission_suggestions),
        });
  mirror.asked(tool, toolInput, compact({ title, agentID: input.agent_id, expiresAt }));
  return output;
}

function stop(mirror: SessionMirror, { input }: HookCall, claim: HookClaim, options: HookRouterOptions) {
  const { owed, inbox, log } = options;
  // Concurrent hooks arrive in any order. After the end of the session there is no one to hold.
  const text = lastWordsOf(input);
  if (mirror.isLeft) return void mirror.stopped(null, text, claim);
  const tasks = Array.isArray(input.background_tasks) ? listOf(input.background_tasks) : undefined;
  const runs = tasks?.flatMap((task) => textOf(fieldsOf(task).id) ?? []);
  const unseen = inbox.waitingFor(mirror.sessionId).filter(({ messageId }) => !mirror.isInHand(messageId));
  const waiting = owed().filter(
    ({ messageId, sessionId }) =>
      sessionId === mirror.sessionId &&
      // Typed messages are answered in the terminal, and messages in delivery are being answered.
      !mirror.wasTyped(messageId) &&
      !mirror.isInHand(messageId) &&
      !inbox.wasRefused(messageId) &&
      !unseen.some((message) => message.messageId === messageId),
  );
  const replies = [...unseen, ...waiting.map((one) => ({ ...one, unseen: false }))];
  const offer = options.offer(mirror);
  const decision = stopDecision(replies, input.stop_hook_active === true, offer);
  if (decision === null) {
    mirror.stopped(null, text, claim, runs);
    return undefined;
  }
  if (offer !== null) mirror.offeredToListen(true);
  const owes = decision.messageIds.length;
  const why = owes === 0 ? 'it gets the hint about listening' : `${owes} pending replies`;
  log('info', `${mirror.sessionId} is held at the end of its turn: ${why}`);
  return resolveWithin(STORED_MS, mirror.offer(decision, claim)).then(() => decision.output);
}

function resolveWithin(ms: number, done: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void done.finally(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Last text of the agent, or the CLI message about a failed API call. */
function lastWordsOf(input: Fields): string | null {
  return textOf(input.last_assistant_message);
}

function failureOf(input: Fields): string {
  return textOf(input.error_details) ?? textOf(input.error) ?? 'The model API failed.';
}

/** @see SessionEnd in the documentation of Claude Code */
function endOf(reason: string | null): string {
  if (reason === 'clear') return 'cleared; the terminal started a new session';
  if (reason === 'resume') return 'the terminal switched to another session';
  return reason === 'logout' ? 'logged out' : 'the terminal session was left';
}
