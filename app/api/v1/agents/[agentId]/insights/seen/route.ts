import { postInsightsSeen } from '@/lib/commands/see-insights';
import { mount } from '../../../../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ POST: postInsightsSeen });
