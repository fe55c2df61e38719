import { headers } from 'next/headers';
import { EMBED_HEADER } from '@/lib/server/access/embeds';

/**
 * Whether this is a page that a console shows in a frame. It stands in nothing that reads what the browser keeps, or that
 * asks the server as whoever has signed in to the dashboard.
 */
export async function isEmbed(): Promise<boolean> {
  return (await headers()).has(EMBED_HEADER);
}
