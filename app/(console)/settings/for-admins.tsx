import { whomToAsk } from './whom-to-ask';

/** In the place of a page that only admins may see. */
export async function ForAdmins() {
  return <p className="max-w-prose text-ink-2">Only admins see this page. Ask {await whomToAsk()}.</p>;
}
