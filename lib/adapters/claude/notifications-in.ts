import { compact, type Fields, numberOf } from '@/lib/protocol/fields';

export interface Notification {
  /** As in the transcript; the same text is the same notification. */
  text: string;
  fields: Fields;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&' };

/** The `<task-notification>` elements of a prompt. Inside, the CLI writes `<`, `>` and `&` of others as entities. */
export function notificationsIn(text: string): Notification[] {
  return [...text.matchAll(/<task-notification>([\s\S]*?)<\/task-notification>/g)].map(([whole, body = '']) => {
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
    return {
      text: whole,
      fields: compact({
        task_id: field('task-id'),
        tool_use_id: field('tool-use-id'),
        status: field('status'),
        summary: field('summary'),
        event: field('event'),
        output_file: field('output-file'),
        usage: Object.keys(usage).length > 0 ? usage : undefined,
      }),
    };
  });
}
