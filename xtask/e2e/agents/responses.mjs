// OpenAI Responses, as Codex speaks it, for models that have the tools exec_command and apply_patch.

const textOf = content =>
  typeof content === 'string' ? content : (content ?? []).map(part => part.text ?? '').join('')

export const tools = body => body.tools ?? []

export function read(body) {
  const talk = []
  for (const item of body.input ?? []) {
    if (item.type === 'message' || (item.role && !item.type)) {
      const role = item.role === 'developer' ? 'system' : item.role
      const parts = typeof item.content === 'string' ? [{ text: item.content }] : item.content
      for (const { text } of parts) if (text) talk.push({ role, text })
    } else if (/_call_output$/.test(item.type)) talk.push({ result: textOf(item.output?.content ?? item.output) })
    else if (/_call$/.test(item.type)) talk.push({ call: item.name, input: item.input ?? JSON.parse(item.arguments || '{}') })
  }
  return talk
}

const lines = (sign, text) => text.replace(/\n$/, '').split('\n').map(line => sign + line).join('\n')

function patch([tool, input]) {
  const change =
    tool === 'write'
      ? `*** Add File: ${input.path}\n${lines('+', input.content)}`
      : `*** Update File: ${input.path}\n@@\n${lines('-', input.old)}\n${lines('+', input.new)}`
  return `*** Begin Patch\n${change}\n*** End Patch`
}

function item(call, tools, fresh) {
  const freeform = tools.some(tool => tool.name === 'apply_patch' && tool.type === 'custom')
  const made = fields => ({ id: fresh('item'), call_id: fresh('call'), status: 'completed', ...fields })
  const call_ = (name, args) => made({ type: 'function_call', name, arguments: JSON.stringify(args) })
  if (call[0] === 'bash') return call_('exec_command', { cmd: call[1].command, yield_time_ms: 30000 })
  if (freeform) return made({ type: 'custom_tool_call', name: 'apply_patch', input: patch(call) })
  return call_('apply_patch', { input: patch(call) })
}

export function answer({ answer, tools, fresh }) {
  const output = answer.calls.map(call => item(call, tools, fresh))
  if (answer.say) {
    const content = [{ type: 'output_text', text: answer.say, annotations: [] }]
    output.unshift({ type: 'message', id: fresh('msg'), role: 'assistant', status: 'completed', content })
  }
  const id = fresh('resp')
  const events = [['response.created', { type: 'response.created', response: { id } }]]
  for (const [output_index, item] of output.entries()) {
    events.push(['response.output_item.added', { type: 'response.output_item.added', output_index, item }])
    if (item.type === 'message') {
      const delta = { item_id: item.id, output_index, content_index: 0, delta: item.content[0].text }
      events.push(['response.output_text.delta', { type: 'response.output_text.delta', ...delta }])
    }
    events.push(['response.output_item.done', { type: 'response.output_item.done', output_index, item }])
  }
  const usage = {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 20,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 120,
  }
  events.push(['response.completed', { type: 'response.completed', response: { id, status: 'completed', output, usage } }])
  return { events }
}
