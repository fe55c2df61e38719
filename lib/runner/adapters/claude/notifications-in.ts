import { compact, type Fields, numberOf } from '@interlude/protocol/fields';

export interface Notification {
  /** As in the transcript; the same text is the same notification. */
  text: string;
  fields: Fields;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&' };

/** Ids in a notification that are markers of the CLI's own, not tasks. */
const MARKER = /^__/;

/**
 * The `<task-notification>` elements of a prompt; one that names several tasks counts for each of them. Inside, the CLI
 * writes `<`, `>` and `&` of others as entities.
 */
export function notificationsIn(text: string): Notification[] {
  return [...text.matchAll(/<task-notification>([\s\S]*?)<\/task-notification>/g)].flatMap(([whole, body = '']) => {
    const ids = [...body.matchAll(/<task-id>([^<]*)<\/task-id>/g)].map(([, id = '']) => id.trim());
    const field = (name: string) => {
      const value = new RegExp(`<${name}>([\\s\\S]*?)</${name}>`).exec(body)?.[1]?.trim();
      return value?.replace(/&(lt|gt|amp);/g, (_, entity: string) => ENTITIES[entity] ?? '');
    };
    const number = (name: string) => numberOf(Number(field(name) ?? Number.NaN)) ?? undefined;
    const usage = compact({
      total_tokens: number('subagent_tokens') ?? number('total_tokens'),
      tool_uses: number('tool_uses'),
      duration_ms: number('duration_ms'),
    });
    const tasks = ids.filter((id) => id !== '' && !MARKER.test(id));
    return tasks.map((id) => ({
      text: tasks.length === 1 ? whole : `${id} ${whole}`,
      fields: compact({
        task_id: id,
        tool_use_id: field('tool-use-id'),
        status: field('status'),
        summary: field('summary'),
        event: field('event'),
        output_file: field('output-file'),
        usage: Object.keys(usage).length > 0 ? usage : undefined,
      }),
    }));
  });
}
