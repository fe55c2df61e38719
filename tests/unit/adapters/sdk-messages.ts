/** Messages of Agent SDK 0.3.329, each with a fresh uuid. */
export function sdkMessages() {
  let count = 0;
  const uuid = () => `uuid-${++count}`;
  const system = (subtype: string, fields: object = {}) => ({ type: 'system', subtype, uuid: uuid(), ...fields });
  const content = (blocks: object[], fields: object) => ({ uuid: uuid(), parent_tool_use_id: null, ...fields, blocks });
  return {
    system,
    said: (text: string, id: string) => ({ type: 'user', uuid: id, message: { role: 'user', content: text } }),
    init: (userMessageIds: string[] = [], fields: object = {}) =>
      system('init', {
        model: 'claude-sonnet-4-5',
        ...(userMessageIds.length > 0 ? { user_message_uuids: userMessageIds } : {}),
        ...fields,
      }),
    requesting: (fields: object = {}) => system('status', { status: 'requesting', ...fields }),
    assistant: (apiId: string, blocks: object[], fields: object = {}) => {
      const { blocks: list, ...envelope } = content(blocks, fields);
      return { type: 'assistant', ...envelope, message: { id: apiId, role: 'assistant', content: list } };
    },
    toolResult: (toolUseId: string, text: string, fields: object = {}) => ({
      type: 'user',
      uuid: uuid(),
      parent_tool_use_id: null,
      message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: toolUseId, content: text, ...fields }] },
    }),
    stream: (event: object, fields: object = {}) => ({
      type: 'stream_event',
      uuid: uuid(),
      parent_tool_use_id: null,
      event,
      ...fields,
    }),
    taskStarted: (id: string, fields: object = {}) =>
      system('task_started', {
        task_id: id,
        run_id: `run-${id}`,
        tool_use_id: `toolu-${id}`,
        description: id,
        task_type: 'local_bash',
        is_backgrounded: true,
        ...fields,
      }),
    taskEnded: (id: string, fields: object = {}) =>
      system('task_notification', {
        task_id: id,
        run_id: `run-${id}`,
        status: 'failed',
        summary: `Background command "${id}" failed with exit code 3`,
        ...fields,
      }),
    taskSet: (...ids: string[]) =>
      system('background_tasks_changed', { tasks: ids.map((id) => ({ task_id: id, run_id: `run-${id}` })) }),
    result: (fields: object = {}) => ({
      type: 'result',
      subtype: 'success',
      uuid: uuid(),
      is_error: false,
      num_turns: 1,
      result: '',
      terminal_reason: 'completed',
      ...fields,
    }),
    woken: (taskId: string) => ({ origin: { kind: 'task-notification', runId: `run-${taskId}` } }),
  };
}

export const text = (value: string) => ({ type: 'text', text: value });
export const toolUse = (id: string, input: object = {}, name = 'Bash') => ({ type: 'tool_use', id, name, input });
