import { postWaive } from '@/lib/commands/waive-obligation';
import { mount } from '../../../../../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ POST: postWaive });
