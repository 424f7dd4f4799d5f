// Anthropic Messages, as Claude Code speaks it.

const reminders = /<system-reminder>[\s\S]*?<\/system-reminder>/g
const textOf = content =>
  typeof content === 'string' ? content : (content ?? []).map(part => part.text ?? '').join('')

export const tools = body => body.tools ?? []

export function read(body) {
  const talk = []
  for (const { role, content } of body.messages ?? []) {
    for (const block of typeof content === 'string' ? [{ type: 'text', text: content }] : content) {
      if (block.type === 'text') {
        const text = block.text.replace(reminders, '').trim()
        if (text) talk.push({ role, text })
      } else if (block.type === 'tool_use') talk.push({ call: block.name, input: block.input })
      else if (block.type === 'tool_result') talk.push({ result: textOf(block.content) })
    }
  }
  return talk
}

function toolUse([tool, input], root, fresh) {
  const made = {
    write: () => ['Write', { file_path: `${root}/${input.path}`, content: input.content }],
    edit: () => ['Edit', { file_path: `${root}/${input.path}`, old_string: input.old, new_string: input.new }],
    bash: () => ['Bash', { command: input.command, description: 'As the script says', ...(input.background ? { run_in_background: true } : {}) }],
    agent: () => ['Agent', { description: 'A helper', prompt: input.prompt, subagent_type: 'general-purpose' }],
  }[tool]()
  return { type: 'tool_use', id: fresh('toolu'), name: made[0], input: made[1] }
}

export function answer({ answer, body, root, fresh }) {
  const content = [...(answer.say ? [{ type: 'text', text: answer.say }] : []), ...answer.calls.map(call => toolUse(call, root, fresh))]
  const usage = { input_tokens: 100, output_tokens: 20, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
  const stop_reason = answer.calls.length > 0 ? 'tool_use' : 'end_turn'
  const message = { id: fresh('msg'), type: 'message', role: 'assistant', model: body.model, stop_sequence: null, usage }
  if (!body.stream) return { json: { ...message, content, stop_reason } }
  const events = [['message_start', { type: 'message_start', message: { ...message, content: [], stop_reason: null } }]]
  for (const [index, block] of content.entries()) {
    const [empty, delta] =
      block.type === 'text'
        ? [{ type: 'text', text: '' }, { type: 'text_delta', text: block.text }]
        : [{ ...block, input: {} }, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }]
    events.push(
      ['content_block_start', { type: 'content_block_start', index, content_block: empty }],
      ['content_block_delta', { type: 'content_block_delta', index, delta }],
      ['content_block_stop', { type: 'content_block_stop', index }],
    )
  }
  const delta = { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 20 } }
  events.push(['message_delta', delta], ['message_stop', { type: 'message_stop' }])
  return { events }
}
