import { idSchema } from '@/lib/protocol/envelope';
import { MAX_ID_LENGTH } from '@/lib/protocol/limits';
import { usageError } from './exit';

/** @throws CliError for what the server would put into quarantine, record by record */
export function requireIds(ids: Record<string, string | undefined>, command: string): void {
  for (const [name, id] of Object.entries(ids)) {
    if (id === undefined || idSchema.safeParse(id).success) continue;
    throw usageError(`--${name} is an id of 1 to ${MAX_ID_LENGTH} characters, and not . or ..`, command);
  }
}
