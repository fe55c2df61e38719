import { mountOpen } from '@/app/mount-open';
import { accessPolicy } from '@/lib/access/access-policy';
import { signIn, signInByForm } from '@/lib/access/sign-in';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mountOpen({
  GET: async (request) => signIn(request, accessPolicy(process.env)),
  POST: async (request) => signInByForm(request, accessPolicy(process.env)),
});
