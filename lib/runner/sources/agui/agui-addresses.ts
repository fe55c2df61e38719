/**
 * The addresses of an AG-UI server, from the one at which runs are posted. AG-UI itself knows only that one; the others
 * are those of the Ambient platform's runner, and of CopilotKit's runtime, which stand beside it.
 *
 * | runs | beside it |
 * |---|---|
 * | `http://host/` | `http://host/events/…` |
 * | `http://host/agui` | `http://host/agui/events/…` |
 * | `http://host/api/agent/default/run` (CopilotKit) | `http://host/api/agent/default/events/…` |
 *
 * A query string stays with all of them.
 */
export interface AgUiAddresses {
  run: string;
  /** Where a run is interrupted, and with which body: Ambient's, CopilotKit's. */
  interrupts: readonly { url: string; body: object }[];
  tasks: string;
  stop(taskId: string): string;
  /** Where events between runs may be, in the order in which they are tried. */
  events: readonly { url: string; isOwn: boolean }[];
}

/**
 * @param eventsPath where the events are, if the caller knows: from the host's root, `{threadId}` in it is replaced
 * @throws TypeError if the path makes no address
 */
export function addressesOf(url: string, threadId: string, eventsPath?: string): AgUiAddresses {
  const base = url.replace(/[?#].*$/, '').replace(/\/(run\/?)?$/, '');
  const query = /\?[^#]*/.exec(url)?.[0] ?? '';
  const beside = (path: string) => `${base}/${path}${query}`;
  const thread = encodeURIComponent(threadId);
  return {
    run: url,
    interrupts: [
      { url: beside('interrupt'), body: { threadId, thread_id: threadId } },
      { url: beside(`stop/${thread}`), body: {} },
    ],
    tasks: beside('tasks'),
    stop: (taskId) => beside(`tasks/${encodeURIComponent(taskId)}/stop`),
    events:
      eventsPath === undefined
        ? [
            { url: beside(`events/${thread}`), isOwn: true },
            { url: beside('events'), isOwn: false },
          ]
        : [
            {
              url: new URL(eventsPath.replaceAll('{threadId}', thread), url).href,
              isOwn: eventsPath.includes('{threadId}'),
            },
          ],
  };
}
